//! A benchmark as its file under `configs/benchmarks/` describes it. The code has no special case for any benchmark.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{UnknownWord, layout::Layout};

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

/// A model file and its inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Path below the scratch directory (`MLPERF_SCRATCH_PATH`).
    pub file: String,
    /// SHA-256 of the file, hexadecimal; `None` when users supply their own file.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Shape of one sample of the first input, without the batch dimension.
    pub input_shape: Vec<usize>,
    /// Element type of the samples on disk and of the model's input.
    pub input_dtype: Dtype,
    /// Layout of samples on disk and in memory. `input_shape` is the input's own shape in every layout.
    #[serde(default, skip_serializing_if = "Layout::is_linear")]
    pub input_format: Layout,
    /// The input's name in the model; required when the model has several inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_name: Option<String>,
    /// Content of a response.
    pub response: Response,
    /// A number that is added to the class of an `argmax-int32` response. It is -1 for a model whose first class is background, because
    /// labels count without it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub class_offset: i32,
    /// How outputs become detections; for the response `detections` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detections: Option<Detections>,
    /// The inputs after the first. A sample then has one tensor per input. Each input's samples are in one array instead of one file per
    /// sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_inputs: Vec<FurtherInput>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// A model input after the first.
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

/// One input of a model, with the layout of its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelInput<'a> {
    /// Its name, when the benchmark's file sets one.
    pub name: Option<&'a str>,
    /// Shape of one sample in the model, without the batch dimension.
    pub shape: &'a [usize],
    /// Type of its elements.
    pub dtype: Dtype,
    /// Layout of a sample.
    pub layout: Layout,
}

impl ModelInput<'_> {
    /// Returns the shape of a sample in memory. A single block of channels has no dimension of its own, as in NVIDIA's files. `None` when
    /// the shape cannot have the layout.
    #[must_use]
    pub fn stored(&self) -> Option<Vec<usize>> {
        let mut stored = self.layout.stored(self.shape, self.dtype.size())?;
        if stored.len() > self.shape.len() && stored[0] == 1 {
            stored.remove(0);
        }
        Some(stored)
    }

    /// Returns the bytes of one sample; `None` when the shape cannot have the layout or is empty.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        let bytes = self
            .stored()?
            .iter()
            .try_fold(self.dtype.size(), |bytes, dim| bytes.checked_mul(*dim));
        bytes.filter(|&bytes| bytes > 0)
    }
}

/// Formats as `int32 linear [384] input_ids`.
impl fmt::Display for ModelInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.dtype.word(), self.layout, self.shape)?;
        self.name.map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

impl Model {
    /// Returns the inputs in the order in which a sample has them.
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

    /// Returns the bytes of a sample: the sum over its tensors. `None` when an input has no valid sample size.
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
    /// Returns the bytes of one element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Int8 => 1,
            Self::Float16 => 2,
            Self::Float32 | Self::Int32 => 4,
            Self::Int64 => 8,
        }
    }

    /// Returns the type's name in NVIDIA's harness and in published measurements.
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

    /// Returns numpy's name of the type. It is little-endian, as all supported machines are.
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

    /// Parses the name that [`Dtype::word`] returns.
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        [Self::Float32, Self::Float16, Self::Int8, Self::Int32, Self::Int64]
            .into_iter()
            .find(|dtype| dtype.word() == text)
            .ok_or_else(|| UnknownWord {
                kind: "type",
                text: text.to_owned(),
                known: "fp32, fp16, int8, int32, int64",
            })
    }
}

/// Content of a response's bytes. The accuracy log has the same bytes in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// The index of the largest output, as a little-endian 32-bit integer.
    ArgmaxInt32,
    /// The first output tensor, unchanged.
    Raw,
    /// All output tensors, interleaved element by element, like `numpy.stack(outputs, axis=-1)`. The tensors have one shape and type.
    /// `accuracy-squad.py` reads start and end in this form.
    Stacked,
    /// 7 floats for each detection: sample index, top, left, bottom and right as fractions of the image, score, class. Their number
    /// differs between samples. `accuracy-openimages.py` and `accuracy-coco.py` read this form.
    Detections,
}

/// How a model's outputs become detections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outputs", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Detections {
    /// RetinaNet's heads, in torchvision's order: for each anchor the logits of its classes, and 4 offsets of its box.
    Heads(DetectionHeads),
    /// YOLO's predictions since its version 8, boxes first: for all predictions the boxes' centres from the left, then from the top, then
    /// widths, heights, and for each class its scores. Boxes are in pixels of the input.
    Predictions(DetectionPredictions),
    /// Detections of 7 floats that the model has finished, at most `most`, and then their number as a float. NVIDIA's plug-ins for
    /// TensorRT have this output.
    Counted {
        /// The detections for which the output has room.
        most: usize,
    },
}

/// The decoding of RetinaNet's heads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionHeads {
    /// The number of classes.
    pub classes: usize,
    /// Pixels between the cells of each level's grid, the finest first.
    pub strides: Vec<usize>,
    /// The smallest size of each level's anchors, in pixels. Each cell has 9 anchors: 3 ratios of 3 sizes.
    pub sizes: Vec<usize>,
    /// Detections have a higher score.
    pub score_threshold: f32,
    /// The most candidates of a level, by score.
    pub candidates_per_level: usize,
    /// The largest intersection over union of two boxes of one class.
    pub overlap_threshold: f32,
    /// The most detections of a sample, by score.
    pub most: usize,
}

/// The decoding of YOLO's predictions. Boxes are fractions of the original image, whose size is in the map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionPredictions {
    /// For each class of the model, the category in the annotations.
    pub categories: Vec<u16>,
    /// Pixels between the cells of each level's grid. Each cell has one prediction.
    pub strides: Vec<usize>,
    /// Detections have a higher score.
    pub score_threshold: f32,
    /// The largest intersection over union of two boxes of one class.
    pub overlap_threshold: f32,
    /// The most detections of a sample, by score.
    pub most: usize,
}

/// Preprocessed samples: one `.npy` per sample and a map file. When the model has several inputs, one `.npy` per input, whose first
/// dimension counts samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// Directory of the samples, below the scratch directory. The sample named `N` in the map is `N.npy`.
    pub dir: String,
    /// The map file, below the scratch directory: one line per sample with its name and its label, and for letterboxed images the
    /// original width and height. Samples with several inputs have no names; they need a map only when their metric does.
    #[serde(default)]
    pub map: String,
    /// Directory of the dataset as published, below the scratch directory; `None` for `data/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Samples in the whole set.
    pub total_samples: usize,
    /// Samples that are loaded together for a performance run (LoadGen's `performance_sample_count`).
    pub performance_samples: usize,
}

/// A file or archive that a benchmark needs and Regatta does not contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Download {
    /// What it is, in a few words.
    pub title: String,
    /// What it is for.
    pub purpose: DownloadPurpose,
    /// Where it is published.
    pub url: String,
    /// What its publisher demands, for example a registration; `None` when it is freely downloadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<String>,
    /// Where it belongs, below the scratch directory: a file, or with a final `/` the directory into which an archive is unpacked.
    pub path: String,
    /// The number of files after unpacking; 1 for a file.
    pub files: usize,
    /// The size of these files together, in bytes, if it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Published checksums, as `md5:HEX` or `sha256:HEX`, with the name of the file that they are of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checksums: Vec<String>,
}

/// What a download is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DownloadPurpose {
    /// The dataset that `prep` reads.
    Dataset,
    /// The labels of the dataset.
    Labels,
    /// A list of samples for calibration.
    Calibration,
    /// The model.
    Model,
}

/// How samples are made from a published dataset. A benchmark selects a kind; the code knows kinds, not benchmarks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Prep {
    /// A gzipped table of images. Each line has the pixels of an image row by row, then its label, comma separated.
    CsvImages {
        /// The table's file name in the dataset's directory, conventionally `data/NAME` below the scratch directory. Samples are named
        /// `STEM_ROW` after the file and their row, counted from 0.
        source: String,
        /// Leading rows that are not samples, for example rows that a model was trained on.
        skip_rows: usize,
        /// The number by which pixels are divided.
        divisor: f32,
    },
    /// Classified JPEG images, prepared as the reference prepares ImageNet.
    JpegImages(JpegImages),
    /// Annotated JPEG images, prepared as the reference prepares OpenImages for RetinaNet.
    DetectionImages(DetectionImages),
    /// Annotated JPEG images, prepared as the reference prepares COCO for YOLO.
    LetterboxImages(LetterboxImages),
    /// Questions about texts, prepared as the reference prepares SQuAD for BERT.
    Squad(Squad),
    /// Arrays from another program, for example the reference's own preprocessing. Each model input has one `.npy` of all samples,
    /// `INPUT.npy` in the dataset's directory.
    Arrays {},
}

/// How JPEG images become samples: decoded as OpenCV does, resized with `INTER_AREA`, cropped in the centre to the model's input, and
/// normalised. The images are in the dataset's directory, with `val_map.txt` or `val.txt`: a line `NAME CLASS` per image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JpegImages {
    /// The shorter side after resizing, in pixels.
    pub short_side: usize,
    /// Numbers that are subtracted from red, green and blue values between 0 and 255.
    pub means: [f32; 3],
    /// The number of classes. Labels count from 0.
    pub classes: u32,
    /// The published scale of `int8` samples, whose fractions are cut off; `None` when users state one.
    #[serde(default)]
    pub int8_scale: Option<f32>,
    /// The size of all images together, as published; `None` when it is unknown.
    #[serde(default)]
    pub source_bytes: Option<u64>,
}

/// How annotated JPEG images become samples: decoded as OpenCV does, resized to the model's input, and divided by 255. The model
/// normalises them itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionImages {
    /// The annotations in COCO's JSON form, in the dataset's directory. Its images are the samples, in its order.
    pub annotations: String,
    /// The directory of the images in the dataset's directory.
    pub images: String,
    /// The directory of the images of calibration lists in the dataset's directory.
    pub calibration_images: String,
    /// Means of red, green and blue values between 0 and 1, for `int8` samples. NVIDIA's 8-bit models do not normalise.
    pub int8_means: [f32; 3],
    /// Standard deviations of these values.
    pub int8_deviations: [f32; 3],
    /// The published scale of `int8` samples, whose fractions are cut off; `None` when users state one.
    #[serde(default)]
    pub int8_scale: Option<f32>,
}

/// How annotated JPEG images become samples: decoded as OpenCV does, resized to fit into the model's input, padded around the centre, and
/// divided by 255.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LetterboxImages {
    /// The annotations in COCO's JSON form, in the dataset's directory.
    pub annotations: String,
    /// The directories that the images can be in, in the dataset's directory. The first that exists is used.
    pub images: Vec<String>,
    /// Images are samples if the address of their licence contains one of these texts, in the order of the annotations. When there is
    /// none, all images are.
    #[serde(default)]
    pub licences: Vec<String>,
    /// The directory of the images of calibration lists in the dataset's directory.
    pub calibration_images: String,
    /// The red, green and blue value of the padding, from 0 to 255.
    pub padding: u8,
}

impl Prep {
    /// Returns the annotations in COCO's JSON form, in the dataset's directory, for a kind that has them.
    #[must_use]
    pub fn annotations(&self) -> Option<&str> {
        match self {
            Self::DetectionImages(kind) => Some(&kind.annotations),
            Self::LetterboxImages(kind) => Some(&kind.annotations),
            _ => None,
        }
    }
}

/// How questions about texts become samples: WordPiece tokens of a question and of a window of its text. The model's inputs are token
/// ids, mask and segments, in this order. Their length is the longest sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Squad {
    /// The file of texts, questions and answers in the dataset's directory.
    pub questions: String,
    /// Its published SHA-256, hexadecimal; `None` accepts any file.
    #[serde(default)]
    pub questions_sha256: Option<String>,
    /// The model's vocabulary in the dataset's directory: a token per line, lower case.
    pub vocabulary: String,
    /// Its published SHA-256, hexadecimal; `None` accepts any file.
    #[serde(default)]
    pub vocabulary_sha256: Option<String>,
    /// The number of tokens in the vocabulary.
    pub vocabulary_tokens: usize,
    /// The distance between the beginnings of two windows, in tokens.
    pub stride: usize,
    /// The longest question, in tokens. The rest is cut off.
    pub question_tokens: usize,
    /// The longest answer that counts, in tokens.
    pub answer_tokens: usize,
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
}

impl Accuracy {
    /// Returns the target value: a product of doubles, as the official checker computes it.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.reference * self.factor
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
