//! A benchmark as its file under `configs/benchmarks/` describes it. No benchmark has a special case in code.

use serde::{Deserialize, Serialize};

/// One benchmark: model, data, and how answers are judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Benchmark {
    /// Schema number of the file.
    pub schema: u16,
    /// The name on the command line and in directories, such as `resnet50`.
    pub name: String,
    /// Other accepted spellings, such as the official checker's `resnet`.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The name that stands in conf files (`model.scenario.key`).
    pub loadgen_model: String,
    /// One line for people.
    pub title: String,
    /// Why results of this benchmark can never be submitted; `None` for the official ones.
    #[serde(default)]
    pub not_submittable: Option<String>,
    /// The model.
    pub model: Model,
    /// The preprocessed data.
    pub dataset: Dataset,
    /// How the samples are made from the dataset as published; `None` where `prep` cannot make them.
    #[serde(default)]
    pub prep: Option<Prep>,
    /// How answers are judged.
    pub accuracy: Accuracy,
    /// `mlperf.conf` lines that the official conf has no entry for: `model.scenario.key` to value.
    #[serde(default)]
    pub mlperf_conf: std::collections::BTreeMap<String, String>,
    /// First guesses for `user.conf` on an unknown machine: `model.scenario.key` to value.
    #[serde(default)]
    pub user_conf: std::collections::BTreeMap<String, String>,
}

/// A model file and its input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Path below the scratch directory (`MLPERF_SCRATCH_PATH`).
    pub file: String,
    /// SHA-256 of the file, hexadecimal; `None` where the user brings their own.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Shape of one sample, without the batch dimension.
    pub input_shape: Vec<usize>,
    /// Element type of the samples on disk and of the model's input.
    pub input_dtype: Dtype,
    /// What a response holds.
    pub response: Response,
}

/// Element types of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 32-bit IEEE float.
    Float32,
    /// 16-bit IEEE float.
    Float16,
    /// Signed byte.
    Int8,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
}

impl Dtype {
    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Int8 => 1,
            Self::Float16 => 2,
            Self::Float32 | Self::Int32 => 4,
            Self::Int64 => 8,
        }
    }
}

/// What the bytes of a response hold; the accuracy log holds the same bytes in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// The index of the largest output, as a little-endian 32-bit integer.
    ArgmaxInt32,
    /// The first output tensor as it is.
    Raw,
}

/// Preprocessed samples: one `.npy` per sample and a map file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// Directory of the samples, below the scratch directory. The sample named `N` in the map is `N.npy`.
    pub dir: String,
    /// The map file, below the scratch directory: a line per sample, its name and its label.
    pub map: String,
    /// Samples in the whole set.
    pub total_samples: usize,
    /// Samples that are loaded together for a performance run (LoadGen's `performance_sample_count`).
    pub performance_samples: usize,
}

/// How samples are made from a dataset as published. A benchmark picks a kind; code knows kinds, not benchmarks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Prep {
    /// A gzipped table of images: a line per image, its pixels row by row and then its label, comma separated.
    CsvImages {
        /// The table's file name in the dataset's directory, by custom `data/NAME` below the scratch directory.
        /// Samples are named `STEM_ROW` after the file and their row, counted from 0.
        source: String,
        /// Rows at the beginning that are no samples, such as those a model was trained on.
        skip_rows: usize,
        /// What pixels are divided by.
        divisor: f32,
    },
}

/// How answers are judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// The metric.
    pub metric: Metric,
    /// The reference model's value in the metric's unit.
    pub reference: f64,
    /// The share of the reference that must be reached, such as 0.99.
    pub factor: f64,
}

impl Accuracy {
    /// The value to reach: computed as the official checker does, as a product of doubles.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.reference * self.factor
    }
}

/// The accuracy metrics that Regatta computes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Percentage of samples whose first response element equals the label.
    Top1,
}

impl Benchmark {
    /// Reads a benchmark file.
    ///
    /// # Errors
    /// The parser's own message, which names line and column.
    pub fn from_toml(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Whether a user may mean this benchmark by `name`.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}
