//! Infers results that the rules allow to copy from measured ones (`inference_rules.adoc`, "Scenarios").
//!
//! These are MultiStream and Offline of an edge system, and a benchmark's lower accuracy variant from its stricter one. An
//! inferred result is a copy of the measured result's directories, under the scenario's name in lower case.
//! `preprocess_submission.py` does the same, and the checkers compute the value. The round's file lists the allowed inferences.
//! Unlike the official tool, this removes nothing and moves nothing to another division. It reports why it left something
//! unchanged.

mod copy;
mod log;

use regatta_types::ErrorKind;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

use log::Measured;
use regatta_catalogue::round::{BenchmarkRules, Inference, Layout, Round, Submission};
use regatta_fsutil::regular_file::{self, MAX_TEXT};
use regatta_types::Scenario;

use crate::{DraftError, draft::Draft, pack::DIVISIONS};
use regatta_submission_check::files::{At, FileError, directories, lies_in};

/// The input of an inference.
#[derive(Debug, Clone, Copy)]
pub struct InferRequest<'a> {
    /// The submission's root.
    pub input: &'a Path,
    /// The new tree's directory, which must not exist.
    pub output: &'a Path,
    /// The submitter's directory name, or `None` for all submitters.
    pub submitter: Option<&'a str>,
    pub round: &'a Round,
}

/// An inferred result. Directories are relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InferredResult {
    /// The directory of the measured result.
    pub from: String,
    /// The directory of the inferred result.
    pub to: String,
}

/// A place where nothing was inferred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedPlace {
    /// The directory, relative to the root.
    pub place: String,
    pub reason: String,
}

/// The result of an inference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InferReport {
    /// The inferred results.
    pub inferred: Vec<InferredResult>,
    /// The places where nothing was inferred.
    pub skipped: Vec<SkippedPlace>,
}

impl InferReport {
    fn skip(&mut self, place: String, reason: String) {
        self.skipped.push(SkippedPlace { place, reason });
    }
}

/// The error if no tree was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InferError {
    /// There is no such submitter.
    #[error("{input} has no results of {who} in closed/, open/ or network/", input = input.display())]
    NoSubmission {
        /// The submission's root.
        input: PathBuf,
        /// The submitter, or `anybody`.
        who: String,
    },
    /// The new tree would be copied into itself.
    #[error("{output} is inside the submission {input}; hint: name a directory elsewhere", output = output.display(), input = input.display())]
    Inside {
        /// The new tree's directory.
        output: PathBuf,
        /// The submission.
        input: PathBuf,
    },
    /// The new tree cannot be written.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl InferError {
    /// Returns who has to act.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSubmission { .. } | Self::Inside { .. } | Self::Draft(DraftError::Exists { .. }) => {
                ErrorKind::Usage
            }
            _ => ErrorKind::Internal,
        }
    }
}

/// Copies the tree and adds the results that may be inferred.
///
/// # Errors
/// Returns an error if there is no such submission, the output exists, or a file cannot be read or written. No output then
/// remains.
pub fn infer(request: &InferRequest<'_>) -> Result<InferReport, InferError> {
    let homes = homes(request)?;
    if lies_in(request.output, request.input) {
        return Err(InferError::Inside {
            output: request.output.to_owned(),
            input: request.input.to_owned(),
        });
    }
    let draft = Draft::begin(request.output)?;
    copy::tree(request.input, &draft)?;
    let mut report = InferReport::default();
    for home in homes {
        let submitter = Submitter {
            draft: &draft,
            round: request.round,
            home: &home,
        };
        submitter.infer(&mut report)?;
    }
    draft.finish()?;
    Ok(report)
}

/// Returns the submitters' directories, relative to the root.
fn homes(request: &InferRequest<'_>) -> Result<Vec<String>, InferError> {
    let mut homes = Vec::new();
    for division in DIVISIONS {
        for name in directories(&request.input.join(division))? {
            let name = name.to_string_lossy();
            let required_scenario = request.submitter.is_none_or(|submitter| submitter == name);
            let home = format!("{division}/{name}");
            if required_scenario && request.input.join(&home).join("results").is_dir() {
                homes.push(home);
            }
        }
    }
    if homes.is_empty() {
        return Err(InferError::NoSubmission {
            input: request.input.to_owned(),
            who: request.submitter.unwrap_or("anybody").to_owned(),
        });
    }
    Ok(homes)
}

/// One submitter in one division.
struct Submitter<'a> {
    draft: &'a Draft,
    round: &'a Round,
    /// The submitter's directory, relative to the root.
    home: &'a str,
}

impl Submitter<'_> {
    fn infer(&self, report: &mut InferReport) -> Result<(), FileError> {
        let submission = &self.round.submission;
        let mapping = self.mapping()?;
        let results = format!("{}/results", self.home);
        for system in self.names(&results)? {
            let kind = self.system_type(&system)?;
            for model in self.names(&format!("{results}/{system}"))? {
                let official = submission.model_of(&model, &mapping);
                let Some(rules) = submission.benchmarks.get(official) else {
                    continue;
                };
                let below = format!("{system}/{model}");
                if kind.contains("edge") {
                    self.scenarios(&below, rules, rules.required(&kind).unwrap_or_default(), report)?;
                } else {
                    let why = "only results of edge systems may be inferred".to_owned();
                    report.skip(format!("{results}/{below}"), why);
                }
            }
            // This follows the scenarios, so that inferred ones are copied too.
            for model in self.names(&format!("{results}/{system}"))? {
                self.lower_accuracy(submission, &system, &model, report)?;
            }
        }
        Ok(())
    }

    /// Infers the required scenarios that are missing.
    fn scenarios(
        &self,
        below: &str,
        rules: &BenchmarkRules,
        required: &[Scenario],
        report: &mut InferReport,
    ) -> Result<(), FileError> {
        let model = format!("{}/results/{below}", self.home);
        let there = self.names(&model)?;
        let directory = |scenario: Scenario| {
            let same = |name: &&String| name.parse::<Scenario>().is_ok_and(|named| named == scenario);
            there.iter().find(same)
        };
        for &required_scenario in required {
            if directory(required_scenario).is_some() {
                continue;
            }
            let mut why = format!("no run of this benchmark may be used for {required_scenario}");
            let may = |inference: &&Inference| inference.to == required_scenario;
            let mut made = false;
            for inference in self.round.submission.inferences.iter().filter(may) {
                let Some(from) = directory(inference.from) else {
                    continue;
                };
                if rules.result_keys.contains_key(&required_scenario) {
                    why = format!(
                        "its {required_scenario} result is counted otherwise than in samples: run it"
                    );
                    break;
                }
                let measured = Measured::read(&self.draft.root().join(&model).join(from));
                if let Err(error) = measured.and_then(|measured| measured.check_inferable(*inference)) {
                    why = error.to_string();
                    continue;
                }
                let to = required_scenario.as_str().to_ascii_lowercase();
                self.copy_parts(below, from, &to)?;
                report.inferred.push(InferredResult {
                    from: format!("{model}/{from}"),
                    to: format!("{model}/{to}"),
                });
                made = true;
                break;
            }
            if !made {
                report.skip(model.clone(), why);
            }
        }
        Ok(())
    }

    /// Copies a scenario's directories in all parts of the layout.
    fn copy_parts(&self, below: &str, from: &str, to: &str) -> Result<(), FileError> {
        for part in self.parts() {
            let directory = format!("{}/{part}/{below}", self.home);
            if self.draft.root().join(&directory).join(from).is_dir() {
                self.copy(&format!("{directory}/{from}"), &format!("{directory}/{to}"))?;
            }
        }
        Ok(())
    }

    /// Copies the stricter variant to the other one if that has no results.
    fn lower_accuracy(
        &self,
        submission: &Submission,
        system: &str,
        model: &str,
        report: &mut InferReport,
    ) -> Result<(), FileError> {
        let Some(rule) = &submission.lower_accuracy else {
            return Ok(());
        };
        let Some(stem) = model.strip_suffix(rule.from.as_str()) else {
            return Ok(());
        };
        let lower = format!("{stem}{}", rule.to);
        let results = format!("{}/results/{system}", self.home);
        if self.is_there(&format!("{results}/{lower}")) {
            return Ok(());
        }
        if !submission.benchmarks.contains_key(&lower) {
            let why = format!("{} has no {lower}", self.round.name);
            report.skip(format!("{results}/{model}"), why);
            return Ok(());
        }
        for part in self.parts() {
            let directory = format!("{}/{part}/{system}", self.home);
            if self.is_there(&format!("{directory}/{model}")) {
                self.copy(&format!("{directory}/{model}"), &format!("{directory}/{lower}"))?;
            }
        }
        let code = match submission.layout {
            Layout::Classic => "code",
            Layout::ResultsOnly => "src",
        };
        let (from, to) = (
            format!("{}/{code}/{model}", self.home),
            format!("{}/{code}/{lower}", self.home),
        );
        if self.is_there(&from) && !self.is_there(&to) {
            self.copy(&from, &to)?;
        }
        report.inferred.push(InferredResult {
            from: format!("{results}/{model}"),
            to: format!("{results}/{lower}"),
        });
        Ok(())
    }

    /// Returns the parts of a submission that have a directory per result.
    fn parts(&self) -> &'static [&'static str] {
        match self.round.submission.layout {
            Layout::Classic => &["results", "measurements", "compliance"],
            Layout::ResultsOnly => &["results"],
        }
    }

    fn copy(&self, from: &str, to: &str) -> Result<(), FileError> {
        let from = self.draft.root().join(from);
        copy::directory(&from, Path::new(to), self.draft)
    }

    fn is_there(&self, path: &str) -> bool {
        fs::symlink_metadata(self.draft.root().join(path)).is_ok()
    }

    /// Returns the names of directories. Names that are not UTF-8 do not belong to a submission and are ignored.
    fn names(&self, path: &str) -> Result<Vec<String>, FileError> {
        let names = directories(&self.draft.root().join(path))?;
        Ok(names
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .collect())
    }

    /// Returns a system's `system_type`, or an empty string if the description does not have it.
    fn system_type(&self, system: &str) -> Result<String, FileError> {
        let json = self.json(&format!("{}/systems/{system}.json", self.home))?;
        let kind = json.get("system_type").and_then(serde_json::Value::as_str);
        Ok(kind.unwrap_or_default().to_owned())
    }

    /// Returns the open division's own names of models.
    fn mapping(&self) -> Result<std::collections::BTreeMap<String, String>, FileError> {
        let json = self.json(&format!("{}/model_mapping.json", self.home))?;
        let names = json.as_object().into_iter().flatten();
        Ok(names
            .filter_map(|(name, model)| Some((name.clone(), model.as_str()?.to_owned())))
            .collect())
    }

    /// Returns a JSON file, or `null` if it does not exist or cannot be parsed, which the checker reports.
    fn json(&self, path: &str) -> Result<serde_json::Value, FileError> {
        let path = self.draft.root().join(path);
        match regular_file::read(&path, MAX_TEXT) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(serde_json::Value::Null),
            failed => failed.at("read", &path).map(|_| serde_json::Value::Null),
        }
    }
}
