//! A benchmark as its file under `configs/benchmarks/` describes it. The code has no special case for any benchmark.

mod accuracy;
mod dataset;
mod detections;
mod diffusion;
mod dtype;
mod encoder_decoder;
mod model;
mod prep;
mod tagged;
mod transducer;
mod windows;

use serde::{Deserialize, Serialize};

pub use self::{
    accuracy::{Accuracy, AccuracyMetric, BoundSide, DetectionClasses, FurtherBound, SummaryFiles},
    dataset::{Dataset, Download, DownloadPurpose, FetchKind},
    detections::{
        BoxArrangement, ClassScores, DefaultBoxLevel, DetectionDefaultBoxes, DetectionHeads,
        DetectionPredictions, Detections,
    },
    diffusion::{Diffusion, NoiseSchedule},
    dtype::Dtype,
    encoder_decoder::{ENGLISH_SYMBOLS, EncoderDecoder, LogMelFeatures},
    model::{CaptionInputs, FurtherInput, Generation, Model, ModelInput, PromptInputs, Response},
    prep::{
        CaptionTokens, ChannelOrder, DetectionImages, ImageFit, ImageResize, JpegImages, LetterboxImages,
        Prep, PublishedFile, RecordForm, Speech, SpeechClips, Squad, Volumes,
    },
    transducer::{NetworkState, SpeechFeatures, Transducer},
    windows::SlidingWindows,
};

/// One benchmark: model, data, and accuracy metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// `mlperf.conf` entries that are not in the official conf: `model.scenario.key` to value.
    #[serde(default)]
    pub mlperf_conf: std::collections::BTreeMap<String, String>,
    /// What users get from elsewhere: dataset, labels, calibration lists, model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub downloads: Vec<Download>,
    /// Initial values for `user.conf` on an unknown machine: `model.scenario.key` to value.
    #[serde(default)]
    pub user_conf: std::collections::BTreeMap<String, String>,
}

impl Benchmark {
    /// Parses a benchmark file.
    ///
    /// # Errors
    /// The parser's own message, with line and column, or what is wrong with `outputs`.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        let benchmark: Self = toml::from_str(text)?;
        benchmark
            .model
            .check_outputs()
            .map_err(serde::de::Error::custom)?;
        Ok(benchmark)
    }

    /// Creates the benchmark of a model server that a client on another machine measures. The client has samples and metric, so the benchmark
    /// has only a name.
    #[must_use]
    pub fn measured_by_client(name: &str) -> Self {
        Self {
            schema: 1,
            name: name.to_owned(),
            aliases: Vec::new(),
            loadgen_model: name.to_owned(),
            title: format!("{name}, which a client on another machine measures"),
            not_submittable: None,
            model: Model::served(),
            dataset: Dataset {
                dir: String::new(),
                map: String::new(),
                source: None,
                total_samples: 1,
                performance_samples: 1,
            },
            prep: None,
            // Nothing computes it.
            accuracy: Accuracy::of_classes(0.0, 1.0),
            mlperf_conf: std::collections::BTreeMap::new(),
            downloads: Vec::new(),
            user_conf: std::collections::BTreeMap::new(),
        }
    }

    /// Returns the path of the tokenizer's file `tokenizer.json` below the scratch directory: that of `[accuracy.summaries]`, or of a published
    /// checkpoint.
    #[must_use]
    pub fn tokenizer_file(&self) -> Option<String> {
        const FILE: &str = "tokenizer.json";
        if let Some(summaries) = &self.accuracy.summaries {
            return Some(format!("{}/{FILE}", summaries.tokenizer));
        }
        let mut downloads = self.downloads.iter();
        let published = downloads.find(|download| download.checkpoint.iter().any(|name| name == FILE))?;
        Some(format!("{}/{FILE}", published.path.trim_end_matches('/')))
    }

    /// Whether `name` is this benchmark's name or one of its aliases.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_that_no_response_is_made_of_are_refused() {
        let read = |text: &str, outputs: &str| {
            let text = text.replacen("\nresponse =", &format!("\noutputs = {outputs}\nresponse ="), 1);
            Benchmark::from_toml(&text).map(|benchmark| benchmark.model.outputs)
        };
        let digits = include_str!("../../../configs/benchmarks/digits.toml");
        assert_eq!(read(digits, r#"["logits"]"#).unwrap(), ["logits"]);
        let stacked = digits.replace("argmax-int32", "stacked");
        assert_eq!(read(&stacked, r#"["b", "a"]"#).unwrap().len(), 2);
        for (text, outputs, expected) in [
            (
                digits,
                r#"["a", "b"]"#,
                "`outputs` names a, b, but the benchmark's responses are made of one output",
            ),
            (&stacked, r#"["a", "b", "a"]"#, "`outputs` names a twice"),
            (
                include_str!("../../../configs/benchmarks/whisper.toml"),
                r#"["a"]"#,
                "is for a model of one network",
            ),
            (
                include_str!("../../../configs/benchmarks/llama3.1-8b-edge.toml"),
                r#"["a"]"#,
                "is for a network",
            ),
        ] {
            let error = read(text, outputs).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected} in {error}");
        }
    }
}
