//! A benchmark as its file under `configs/benchmarks/` describes it. No benchmark has a special case in code.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{UnknownWord, layout::Layout};

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
    /// Shape of one sample, without the batch dimension; of the first input where the model has several.
    pub input_shape: Vec<usize>,
    /// Element type of the samples on disk and of the model's input.
    pub input_dtype: Dtype,
    /// How samples lie on disk and in memory. Where that is not linear, `input_shape` is still the input's own.
    #[serde(default, skip_serializing_if = "Layout::is_linear")]
    pub input_format: Layout,
    /// The input's name in the model; needed where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_name: Option<String>,
    /// What a response holds.
    pub response: Response,
    /// The inputs behind the first. A sample then has a tensor for each, and lies in one array per input instead of a file
    /// of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_inputs: Vec<FurtherInput>,
}

/// An input behind the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FurtherInput {
    /// Its name in the model.
    pub name: String,
    /// Shape of one sample, without the batch dimension.
    pub shape: Vec<usize>,
    /// Type of its elements.
    pub dtype: Dtype,
}

/// One input of a model, as its samples lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelInput<'a> {
    /// Its name, where the benchmark's file tells it.
    pub name: Option<&'a str>,
    /// Shape of one sample as the model has it, without the batch dimension.
    pub shape: &'a [usize],
    /// Type of its elements.
    pub dtype: Dtype,
    /// How a sample lies.
    pub layout: Layout,
}

impl ModelInput<'_> {
    /// The shape in which a sample lies in memory. A single block of channels has no dimension of its own, as in NVIDIA's
    /// files. `None` where the shape cannot have the layout.
    #[must_use]
    pub fn stored(&self) -> Option<Vec<usize>> {
        let mut stored = self.layout.stored(self.shape, self.dtype.size())?;
        if stored.len() > self.shape.len() && stored[0] == 1 {
            stored.remove(0);
        }
        Some(stored)
    }

    /// Bytes of one sample; `None` where there is no such sample.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        let bytes = self
            .stored()?
            .iter()
            .try_fold(self.dtype.size(), |bytes, dim| bytes.checked_mul(*dim));
        bytes.filter(|&bytes| bytes > 0)
    }
}

/// As `int32 linear [384] input_ids`.
impl fmt::Display for ModelInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.dtype.word(), self.layout, self.shape)?;
        self.name.map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

impl Model {
    /// The inputs, in the order in which a sample has them.
    pub fn inputs(&self) -> impl Iterator<Item = ModelInput<'_>> + Clone {
        let first = ModelInput {
            name: self.input_name.as_deref(),
            shape: &self.input_shape,
            dtype: self.input_dtype,
            layout: self.input_format,
        };
        let further = self.further_inputs.iter().map(|input| ModelInput {
            name: Some(&input.name),
            shape: &input.shape,
            dtype: input.dtype,
            layout: Layout::Linear,
        });
        std::iter::once(first).chain(further)
    }

    /// Bytes of a sample: its tensors behind each other. `None` where there is no such sample.
    #[must_use]
    pub fn sample_bytes(&self) -> Option<usize> {
        self.inputs()
            .try_fold(0_usize, |sum, input| sum.checked_add(input.bytes()?))
    }
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

    /// The word of NVIDIA's harness and of published measurements.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Float32 => "fp32",
            Self::Float16 => "fp16",
            Self::Int8 => "int8",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
        }
    }

    /// numpy's name of the type, little-endian as all supported machines are.
    #[must_use]
    pub const fn numpy(self) -> &'static str {
        match self {
            Self::Float32 => "<f4",
            Self::Float16 => "<f2",
            Self::Int8 => "|i1",
            Self::Int32 => "<i4",
            Self::Int64 => "<i8",
        }
    }
}

impl FromStr for Dtype {
    type Err = UnknownWord;

    /// By [`Dtype::word`].
    fn from_str(given: &str) -> Result<Self, UnknownWord> {
        [Self::Float32, Self::Float16, Self::Int8, Self::Int32, Self::Int64]
            .into_iter()
            .find(|dtype| dtype.word() == given)
            .ok_or_else(|| UnknownWord {
                kind: "type",
                given: given.to_owned(),
                known: "fp32, fp16, int8, int32, int64",
            })
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
    /// All output tensors, which have one shape and type, element by element in turns, as `numpy.stack(outputs, axis=-1)`
    /// has them and `accuracy-squad.py` reads start and end.
    Stacked,
}

/// Preprocessed samples: one `.npy` per sample and a map file; where the model has several inputs, one `.npy` per input, whose
/// first dimension counts samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// Directory of the samples, below the scratch directory. The sample named `N` in the map is `N.npy`.
    pub dir: String,
    /// The map file, below the scratch directory: a line per sample, its name and its label. Samples of several inputs have
    /// no names, and need none unless their metric does.
    #[serde(default)]
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
    /// Arrays that another program has made, such as the reference's own preprocessing: for every input of the model a
    /// `.npy` of all samples, `INPUT.npy` in the dataset's directory.
    Arrays {},
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

/// The accuracy metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Percentage of samples whose first response element equals the label. Regatta reckons it itself.
    Top1,
    /// F1 of answers cut out of texts (SQuAD), in percent. The reference's `accuracy-squad.py` reckons it.
    SquadF1,
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
