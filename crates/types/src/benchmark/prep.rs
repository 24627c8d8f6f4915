//! The kinds of published datasets, and how each becomes samples. `regatta-prep` makes the samples.

use std::{collections::BTreeMap, num::NonZeroUsize};

use serde::{Deserialize, Serialize};

use super::tagged::read_by_value;

/// How samples are made from a published dataset. A benchmark selects a kind; the code knows kinds, not benchmarks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(remote = "Self", tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
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
    /// Images with a class each. Unless the benchmark's file says otherwise, they are prepared as the reference prepares ImageNet.
    JpegImages(JpegImages),
    /// Annotated JPEG images, prepared as the reference prepares OpenImages for RetinaNet and COCO for SSD.
    DetectionImages(DetectionImages),
    /// Annotated JPEG images, prepared as the reference prepares COCO for YOLO.
    LetterboxImages(LetterboxImages),
    /// Questions about texts, prepared as the reference prepares SQuAD for BERT.
    Squad(Squad),
    /// Volumes with segmentations, prepared as the reference prepares KiTS19 for 3D-UNet.
    Volumes(Volumes),
    /// Utterances with transcripts, prepared as the reference prepares LibriSpeech for RNN-T.
    Speech(Speech),
    /// Files that are checked and copied as they were published. The harness makes the model's inputs of them.
    Published {
        /// The files in the dataset's directory.
        files: Vec<PublishedFile>,
    },
    /// Arrays from another program, for example the reference's own preprocessing. Each model input has one `.npy` of all samples,
    /// `INPUT.npy` in the dataset's directory, or `samples.npy` for an only input without a name. Labels are in `val_map.txt` beside them, if there
    /// are any: a line `NAME CLASS` per sample.
    Arrays {},
}

/// How images become samples: decoded as OpenCV does, resized, and fitted into the model's input. A value between 0 and 255 is divided by
/// `divisor`; then the mean of its channel is subtracted, and the difference divided by the deviation. The images (JPEG, PNG, BMP or WebP) are
/// in the dataset's directory, with `val_map.txt` or `val.txt`: a line `NAME CLASS` per image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JpegImages {
    /// How an image of another size becomes a sample; `crop` by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fit: ImageFit,
    /// The shorter side after resizing, in pixels; for the fit `crop` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_side: Option<usize>,
    /// The red, green and blue value around the image, from 0 to 255; for the fit `letterbox` only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub padding: u8,
    /// How pixels are computed when an image is resized; `area` by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resize: ImageResize,
    /// The order of a sample's channels; `rgb` by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub channels: ChannelOrder,
    /// Whether the channels of a pixel are one after the other. The input's shape is then height, width and 3 instead of 3, height and width.
    #[serde(default, skip_serializing_if = "is_default")]
    pub channels_last: bool,
    /// The number by which values between 0 and 255 are divided; 1 by default.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub divisor: f32,
    /// Means of red, green and blue, which are subtracted from the quotients.
    #[serde(default)]
    pub means: [f32; 3],
    /// Standard deviations of red, green and blue, by which the differences are divided; 1 by default.
    #[serde(default = "ones", skip_serializing_if = "are_ones")]
    pub deviations: [f32; 3],
    /// The number of classes. Labels count from 0.
    pub classes: u32,
    /// The published scale of `int8` samples, whose fractions are cut off; `None` when users state one.
    #[serde(default)]
    pub int8_scale: Option<f32>,
    /// The size of all images together, as published; `None` when it is unknown.
    #[serde(default)]
    pub source_bytes: Option<u64>,
}

impl JpegImages {
    /// The usual names of the labels among the images: the reference's, and Caffe's.
    pub const LABEL_FILES: [&str; 2] = ["val_map.txt", "val.txt"];
}

/// How an image of another size becomes a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ImageFit {
    /// Its shorter side gets the size `short_side`, and the centre is cut out.
    #[default]
    Crop,
    /// It is made as large as fits without changing its shape, and padded around the centre.
    Letterbox,
    /// It is resized to the sample's width and height, which changes its shape.
    Stretch,
}

/// How pixels are computed when an image is resized.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ImageResize {
    /// As `INTER_AREA` of OpenCV.
    #[default]
    Area,
    /// As `INTER_LINEAR` of OpenCV.
    OpencvLinear,
    /// As `BILINEAR` of PIL, which torchvision also uses. The centre is then cut out as torchvision does.
    PilBilinear,
}

/// The order of a sample's channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ChannelOrder {
    /// Red, green, blue.
    #[default]
    Rgb,
    /// Blue, green, red.
    Bgr,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const fn one() -> f32 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(value: &f32) -> bool {
    value.to_bits() == 1.0_f32.to_bits()
}

fn are_ones(values: &[f32; 3]) -> bool {
    values.iter().all(is_one)
}

/// How annotated JPEG images become samples: decoded as OpenCV does, resized to the model's input, divided and normalised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DetectionImages {
    /// The annotations in COCO's JSON form, in the dataset's directory. Its images are the samples, in its order.
    pub annotations: String,
    /// The directory of the images in the dataset's directory.
    pub images: String,
    /// The directory of the images of calibration lists in the dataset's directory.
    pub calibration_images: String,
    /// The number by which red, green and blue values between 0 and 255 are divided.
    #[serde(default = "full_range")]
    pub divisor: f32,
    /// Means that are subtracted from the quotients; 0 for a model that normalises its input itself.
    #[serde(default)]
    pub means: [f32; 3],
    /// Standard deviations by which the differences are divided.
    #[serde(default = "ones")]
    pub deviations: [f32; 3],
    /// The published scale of `int8` samples, whose fractions are cut off; `None` when users state one.
    #[serde(default)]
    pub int8_scale: Option<f32>,
}

const fn full_range() -> f32 {
    255.0
}

const fn ones() -> [f32; 3] {
    [1.0; 3]
}

/// How annotated JPEG images become samples: decoded as OpenCV does, resized to fit into the model's input, padded around the centre, and
/// divided by 255.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

read_by_value!(Prep);

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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    pub stride: NonZeroUsize,
    /// The longest question, in tokens. The rest is cut off.
    pub question_tokens: usize,
    /// The longest answer that counts, in tokens.
    pub answer_tokens: usize,
}

/// How volumes become samples. They are resampled to a common spacing, clipped, normalised, padded to the model's window, and
/// padded or cropped so that windows cover them. Each case is a directory with two NIfTI files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Volumes {
    /// The file of the values in a case's directory.
    pub image: String,
    /// The file of the classes in a case's directory.
    pub labels: String,
    /// The cases that are samples, in the order of their indices.
    pub cases: Vec<String>,
    /// Cases that are copies of published ones, and these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub copies: BTreeMap<String, String>,
    /// The spacing of voxels along each dimension, in millimetres.
    pub spacing: [f64; 3],
    /// The smallest value. Smaller ones are set to it.
    pub lowest: f32,
    /// The largest value. Larger ones are set to it.
    pub highest: f32,
    /// The number that is subtracted from values.
    pub mean: f32,
    /// The number by which the differences are divided.
    pub deviation: f32,
    /// The normalised value of voxels that are added around a volume.
    pub padding: f32,
}

impl Volumes {
    /// Returns the scale of `int8` samples, which are rounded: the largest normalised value is 127, as in NVIDIA's preprocessing. A calibration with
    /// the extremes of all values finds the same scale, because every volume has bones, which are above `highest`.
    #[must_use]
    pub fn int8_scale(&self) -> f32 {
        let normalised = |value: f32| ((value - self.mean) / self.deviation).abs();
        normalised(self.lowest).max(normalised(self.highest)) / 127.0
    }
}

/// How utterances become samples: they are decoded, and padded with zeros to the length of the model's first input. Longer utterances are not
/// samples. The second input
/// is the number of values before the padding. A chapter is a directory `SET/SPEAKER/CHAPTER` of FLAC files, with one file of transcripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Speech {
    /// The directory of the speakers in the dataset's directory.
    pub set: String,
    /// Further directories of speakers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_sets: Vec<String>,
    /// The chapters, `SPEAKER/CHAPTER`, in the order of their samples. When there are none, all chapters are used, in alphabetical order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chapters: Vec<String>,
    /// The utterances in these chapters, with those that are too long.
    pub utterances: usize,
    /// Values in a second.
    pub sample_rate: u32,
    /// How utterances of a chapter are joined to a sample; `None` when each is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clips: Option<SpeechClips>,
}

/// How the utterances of a chapter are joined, one after the other, as long as they fit into a sample, as in the reference's
/// `repackage_librispeech.py`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SpeechClips {
    /// The values of silence between two utterances.
    pub pause: usize,
    /// The name of the file with the transcripts of all clips.
    pub transcripts: String,
}

/// A published file, and what is checked of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PublishedFile {
    /// The file's name in the dataset's directory.
    pub name: String,
    /// The form of the file when it has a record for each sample; `None` when only its hash is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<RecordForm>,
    /// The fields that each record has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// The field with the token ids of a record's prompt, which become the arrays of the model's two inputs: ids, and their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<String>,
    /// The text of a record's prompt with `{FIELD}` for its fields, in place of `prompts`: the tokenizer of `[accuracy.summaries]` makes the token
    /// ids of it. Tokens that the model does not take are cut off at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_template: Option<String>,
    /// The captions of the records, which become arrays of the model's inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captions: Option<CaptionTokens>,
    /// The published SHA-256, hexadecimal; `None` accepts any file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// How captions become the tokens of CLIP, padded to the length of the model's inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CaptionTokens {
    /// The column of the captions.
    pub column: String,
    /// The published file with the merges of the tokenizer, from which its vocabulary follows.
    pub merges: String,
}

/// The form of a file of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RecordForm {
    /// A JSON array of objects.
    Json,
    /// A line for each record, with tabs between its fields. The first line names them.
    Tsv,
}
