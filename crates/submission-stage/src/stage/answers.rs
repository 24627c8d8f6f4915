//! The operator's answers: facts that no run records, for example the submitter's name and the origin of the model.
//!
//! They are a TOML file; `configs/examples/submission-answers.toml` shows every key.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{AnswersError, Question};

/// The newest schema number that this program reads.
const SCHEMA: u16 = 1;

/// The operator's answers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answers {
    /// The schema number of the file.
    #[serde(default)]
    schema: u16,
    /// The submitter's name, used as a directory name and in every system description.
    #[serde(default)]
    pub submitter: Option<String>,
    #[serde(default)]
    pub system: Vec<SystemAnswers>,
    /// Answers about the implementation of each benchmark, by the benchmark's name in the runs.
    #[serde(default)]
    pub benchmark: BTreeMap<String, BenchmarkAnswers>,
    /// Documents of the complete submission.
    #[serde(default)]
    pub documents: Documents,
    /// The open division's own model names, with the official ones that they map to (`model_mapping.json`).
    #[serde(default)]
    pub model_mapping: BTreeMap<String, String>,
    /// The directory against which relative paths are resolved.
    #[serde(skip)]
    base: PathBuf,
}

/// Answers about one system.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemAnswers {
    /// The system's name in directories and files (`system_desc_id`).
    pub name: String,
    /// Names or ids of the system's devices. Optional if there is only one system.
    #[serde(default)]
    pub devices: Vec<String>,
    /// The device state of the system's runs, such as `MaxQ`. A board in two states is two systems. Without it, the system has the runs of its
    /// devices in states that no other system names.
    #[serde(default)]
    pub state: Option<String>,
    /// The output of `regatta-agent doctor --json` on the device: a draft of the description.
    #[serde(default)]
    pub doctor: Option<PathBuf>,
    /// The template of its description (a name in `systems/`), if it is not the one for the device's module.
    #[serde(default)]
    pub template: Option<String>,
    /// Fields of the system description, as the round spells them.
    #[serde(default)]
    pub description: BTreeMap<String, toml::Value>,
}

/// Answers about one benchmark's implementation.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct BenchmarkAnswers {
    /// The implementation's name in directories and files. The default is the engine's name.
    #[serde(default)]
    pub implementation: Option<String>,
    /// The directory with the code, which is copied.
    #[serde(default)]
    pub code: Option<PathBuf>,
    /// A text that is appended to the README of each result.
    #[serde(default)]
    pub notes: Option<PathBuf>,
    /// Directories that are copied into `accuracy/`, for example the images of stable-diffusion-xl.
    #[serde(default)]
    pub accuracy_directories: Vec<PathBuf>,
    /// Fields of the measurement file, as the round spells them.
    #[serde(flatten)]
    pub fields: BTreeMap<String, String>,
}

/// Documents of the complete submission.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Documents {
    /// The document that describes calibration and quantization.
    #[serde(default)]
    pub calibration: Option<PathBuf>,
    /// `mlperf.conf` files of LoadGen revisions. Staging selects the file of a run by its SHA-256.
    #[serde(default)]
    pub mlperf_confs: Vec<PathBuf>,
    /// The official checker's log, in rounds whose layout has a place for it.
    #[serde(default)]
    pub checker_log: Option<PathBuf>,
}

impl Answers {
    /// Reads answers. Relative paths are resolved against `base`, the file's own directory.
    ///
    /// # Errors
    /// Returns [`AnswersError`]; the parser's own message names line and column.
    pub fn from_toml(text: &str, base: &Path) -> Result<Self, AnswersError> {
        let answers: Self = toml::from_str(text).map_err(Box::new)?;
        if answers.schema > SCHEMA {
            return Err(AnswersError::TooNew {
                found: answers.schema,
                known: SCHEMA,
            });
        }
        Ok(Self {
            base: base.to_owned(),
            ..answers
        })
    }

    /// Adds the answer to a question.
    pub fn answer(&mut self, question: &Question, text: &str) {
        match question {
            Question::Submitter => self.submitter = Some(text.to_owned()),
            Question::System { system, field } => {
                let value = toml::Value::String(text.to_owned());
                let index = self.system.iter().position(|known| known.name == *system);
                let index = index.unwrap_or_else(|| {
                    self.system.push(SystemAnswers {
                        name: system.clone(),
                        ..SystemAnswers::default()
                    });
                    self.system.len() - 1
                });
                if let Some(known) = self.system.get_mut(index) {
                    known.description.insert(field.clone(), value);
                }
            }
            Question::Measurement { benchmark, field } => {
                let fields = &mut self.benchmark.entry(benchmark.clone()).or_default().fields;
                fields.insert(field.clone(), text.to_owned());
            }
        }
    }

    /// Resolves a path in the answers.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        self.base.join(path)
    }

    /// Returns the answers about a benchmark.
    pub(super) fn benchmark(&self, name: &str) -> BenchmarkAnswers {
        self.benchmark.get(name).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_reads_and_shows_every_key() {
        let text = include_str!("../../../../configs/examples/submission-answers.toml");
        let answers = Answers::from_toml(text, Path::new("/desk")).unwrap();
        assert!(answers.submitter.is_some() && !answers.system.is_empty());
        let system = &answers.system[0];
        assert!(!system.devices.is_empty() && !system.description.is_empty() && system.doctor.is_some());
        assert!(system.template.is_some());
        let benchmark = answers.benchmark.values().next().unwrap();
        assert!(benchmark.implementation.is_some() && benchmark.notes.is_some());
        assert_eq!(
            answers.path(benchmark.code.as_ref().unwrap()),
            Path::new("/desk/code/resnet50")
        );
        assert!(!benchmark.fields.is_empty() && !benchmark.accuracy_directories.is_empty());
        assert!(answers.documents.calibration.is_some() && answers.documents.checker_log.is_some());
        assert!(!answers.documents.mlperf_confs.is_empty() && !answers.model_mapping.is_empty());
    }

    #[test]
    fn a_misspelt_key_is_located_and_a_newer_file_refused() {
        let error = Answers::from_toml("schema = 1\nsubmiter = 'x'\n", Path::new(".")).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(
            source.contains("line 2") && source.contains("submiter"),
            "{source}"
        );
        assert!(matches!(
            Answers::from_toml("schema = 2", Path::new(".")),
            Err(AnswersError::TooNew { found: 2, known: 1 })
        ));
    }

    #[test]
    fn answers_are_added_where_they_belong() {
        let mut answers = Answers::default();
        let system = Question::System {
            system: "board".to_owned(),
            field: "cooling".to_owned(),
        };
        answers.answer(&system, "fan");
        answers.answer(&system, "water");
        assert_eq!(answers.system.len(), 1);
        assert_eq!(answers.system[0].description["cooling"].as_str(), Some("water"));
        let field = "retraining".to_owned();
        let benchmark = "resnet50".to_owned();
        answers.answer(&Question::Measurement { benchmark, field }, "No");
        assert_eq!(answers.benchmark("resnet50").fields["retraining"], "No");
    }
}
