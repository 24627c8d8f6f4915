//! A benchmark as its file under `configs/benchmarks/` describes it. The code has no special case for any benchmark.

mod dataset;
mod detections;
mod model;
mod prep;
mod transducer;
mod windows;

use serde::{Deserialize, Serialize};

pub use self::{
    dataset::{Dataset, Download, DownloadPurpose},
    detections::{
        BoxArrangement, ClassScores, DefaultBoxLevel, DetectionDefaultBoxes, DetectionHeads,
        DetectionPredictions, Detections,
    },
    model::{Dtype, FurtherInput, Model, ModelInput, Response},
    prep::{DetectionImages, JpegImages, LetterboxImages, Prep, Speech, SpeechClips, Squad, Volumes},
    transducer::{NetworkState, SpeechFeatures, Transducer},
    windows::SlidingWindows,
};

/// One benchmark: model, data, and accuracy metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Benchmark {
    /// Schema number of the file.
    pub schema: u16,
    /// The name on the command line and in directories, for example `resnet50`.
    pub name: String,
    /// Other accepted spellings, for example the official checker's `resnet`.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The model name in conf files (`model.scenario.key`).
    pub loadgen_model: String,
    /// A one-line description for users.
    pub title: String,
    /// Why results of this benchmark can never be submitted; `None` for the official benchmarks.
    #[serde(default)]
    pub not_submittable: Option<String>,
    /// The model.
    pub model: Model,
    /// The preprocessed data.
    pub dataset: Dataset,
    /// How `prep` makes the samples from the published dataset; `None` when it cannot.
    #[serde(default)]
    pub prep: Option<Prep>,
    /// The accuracy metric and its target.
    pub accuracy: Accuracy,
    /// `mlperf.conf` entries that the official conf lacks: `model.scenario.key` to value.
    #[serde(default)]
    pub mlperf_conf: std::collections::BTreeMap<String, String>,
    /// What users get from elsewhere: dataset, labels, calibration lists, model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub downloads: Vec<Download>,
    /// Initial values for `user.conf` on an unknown machine: `model.scenario.key` to value.
    #[serde(default)]
    pub user_conf: std::collections::BTreeMap<String, String>,
}

/// The accuracy metric of a benchmark and its target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// The metric.
    pub metric: Metric,
    /// The reference model's value in the metric's unit.
    pub reference: f64,
    /// The fraction of the reference that a run must reach, for example 0.99.
    pub factor: f64,
    /// What the classes of detections are.
    #[serde(default, skip_serializing_if = "DetectionClasses::is_default")]
    pub classes: DetectionClasses,
    /// British spellings with American ones, for the metric `english-wer`: `english.json` of the Python package `openai-whisper`, below the
    /// scratch directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spellings: Option<String>,
}

impl Accuracy {
    /// Returns the target value: a product of doubles, as the official checker computes it.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.reference * self.factor
    }
}

/// What the classes of detections are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DetectionClasses {
    /// Categories of the annotations.
    #[default]
    Categories,
    /// Positions among the categories of the annotations, from 1. The option `--use-inv-map` of `accuracy-coco.py` reads them.
    Ranks,
}

impl DetectionClasses {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The accuracy metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Percentage of samples whose first response element equals the label. Regatta computes it.
    Top1,
    /// F1 of answers extracted from texts (SQuAD), in percent. Regatta computes it for samples of the preparation kind `squad`.
    SquadF1,
    /// Mean average precision of boxes by the rules of COCO, in percent. Regatta computes it for samples of the preparation kind
    /// `detection-images` and `letterbox-images`.
    CocoMap,
    /// DICE of a segmentation, the mean of its classes without the first, as a fraction. Regatta computes it for samples of the
    /// preparation kind `volumes`.
    Dice,
    /// 100 % minus the word error rate of transcripts. Regatta computes it for samples of the preparation kind `speech`.
    Wer,
    /// The same for English texts of Whisper's symbols, after the normalisation of `openai-whisper`, and with words that are only joined or
    /// separated counted as equal. Regatta computes it for samples of the preparation kind `speech`.
    EnglishWer,
}

impl Benchmark {
    /// Parses a benchmark file.
    ///
    /// # Errors
    /// The parser's own message, with line and column.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Whether `name` is this benchmark's name or one of its aliases.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}
