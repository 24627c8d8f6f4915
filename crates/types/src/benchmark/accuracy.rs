//! The accuracy metric of a benchmark and its bounds, as a benchmark's file describes them. Computes nothing.

use serde::{Deserialize, Serialize};

use super::dtype::Dtype;

/// The accuracy metric of a benchmark and its target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// The metric.
    pub metric: AccuracyMetric,
    /// The reference model's value in the metric's unit.
    pub reference: f64,
    /// The factor by which `reference` is multiplied to get the target, for example 0.99.
    pub factor: f64,
    /// The side of the target on which the value must be; by default `at-most` for `mean-squared-error`, otherwise `at-least`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<BoundSide>,
    /// The type of the numbers in a response, for the metrics `top5`, `auc` and `mean-squared-error`; `float32` by default.
    #[serde(default = "float32", skip_serializing_if = "is_float32")]
    pub response_dtype: Dtype,
    /// The values that responses are compared with, for the metrics `mean-squared-error` and `exact-match`: a `.npy` below the scratch
    /// directory, whose first dimension counts samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The command of the metric `script`, program and arguments. `{log}` is the accuracy log, `{scratch}` the scratch directory. The last line
    /// that it prints is the figure. Only the file in the workspace is trusted with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub script: Vec<String>,
    /// What the classes of detections are.
    #[serde(default, skip_serializing_if = "DetectionClasses::is_default")]
    pub classes: DetectionClasses,
    /// Bounds besides the target, for a metric of several figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherBound>,
    /// What summaries are compared with; for the metric `rouge` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summaries: Option<SummaryFiles>,
    /// British spellings with American ones, for the metric `english-wer`: `english.json` of the Python package `openai-whisper`, below the
    /// scratch directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spellings: Option<String>,
}

const fn float32() -> Dtype {
    Dtype::Float32
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_float32(dtype: &Dtype) -> bool {
    *dtype == Dtype::Float32
}

impl Accuracy {
    /// Returns the accuracy of a benchmark whose answers are classes, with no further settings.
    #[must_use]
    pub const fn of_classes(reference: f64, factor: f64) -> Self {
        Self {
            metric: AccuracyMetric::Top1,
            reference,
            factor,
            side: None,
            response_dtype: Dtype::Float32,
            expected: None,
            script: Vec::new(),
            classes: DetectionClasses::Categories,
            further: Vec::new(),
            summaries: None,
            spellings: None,
        }
    }

    /// Returns the side of the target on which the value must be.
    #[must_use]
    pub fn side(&self) -> BoundSide {
        self.side.unwrap_or(match self.metric {
            AccuracyMetric::MeanSquaredError => BoundSide::AtMost,
            _ => BoundSide::AtLeast,
        })
    }

    /// Returns the target value: a product of doubles, as the official checker computes it.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.reference * self.factor
    }
}

/// A bound on a figure of the accuracy metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FurtherBound {
    /// The figure's official name, for example `ROUGE2`.
    pub figure: String,
    /// The reference model's value.
    pub reference: f64,
    /// The fraction of the reference that is the bound.
    #[serde(default = "whole")]
    pub factor: f64,
    /// The side of the bound on which the figure must be.
    #[serde(default)]
    pub side: BoundSide,
}

const fn whole() -> f64 {
    1.0
}

impl FurtherBound {
    /// Returns the bound: a product of doubles, as the official checker computes it.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.reference * self.factor
    }
}

/// The side of a bound on which a figure must be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BoundSide {
    /// The bound or above.
    #[default]
    AtLeast,
    /// The bound or below.
    AtMost,
}

/// The files that turn tokens into summaries and judge them, below the scratch directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SummaryFiles {
    /// The expected summaries: a JSON array of objects, whose `output` is the text.
    pub expected: String,
    /// The directory of the model's `tokenizer.json` and `tokenizer_config.json`.
    pub tokenizer: String,
    /// The option of the reference's script for that directory. Without it, the script uses its default tokenizer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer_option: Option<String>,
    /// The directory of a language in NLTK's `punkt_tab`.
    pub sentences: String,
}

/// What the classes of detections are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DetectionClasses {
    /// Categories of the annotations.
    #[default]
    Categories,
    /// Positions among the categories of the annotations, from 1, in the order of the file. The option `--use-inv-map` of `accuracy-coco.py` reads them.
    Ranks,
}

impl BoundSide {
    /// Returns whether a value is on this side of a bound.
    #[must_use]
    pub fn admits(self, value: f64, bound: f64) -> bool {
        match self {
            Self::AtLeast => value >= bound,
            Self::AtMost => value <= bound,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl DetectionClasses {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The accuracy metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AccuracyMetric {
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
    /// ROUGE-1 of summaries, in percent, with the further figures `ROUGE2`, `ROUGEL`, `ROUGELSUM` and `GEN_LEN`. Regatta computes it for
    /// benchmarks that name the files.
    Rouge,
    /// The CLIP score of generated images, with the further figure `FID_SCORE`. Only the reference script computes it.
    ClipFid,
    /// Percentage of samples whose class is among the five with the largest scores, in the first output of the response `raw`.
    Top5,
    /// The area under the receiver operating characteristic of classes 0 and 1, from 0 to 1. The score is the last number of a `raw` response.
    Auc,
    /// The mean of the squared differences from `expected`.
    MeanSquaredError,
    /// Percentage of samples whose response has the bytes of `expected`.
    ExactMatch,
    /// The figure that the command `script` prints.
    Script,
}

impl AccuracyMetric {
    /// The metrics whose values are not percentages.
    pub(crate) const NOT_PERCENTAGES: [Self; 5] = [
        Self::Dice,
        Self::ClipFid,
        Self::Auc,
        Self::MeanSquaredError,
        Self::Script,
    ];

    /// Returns whether values are percentages.
    #[must_use]
    pub fn is_percentage(self) -> bool {
        !Self::NOT_PERCENTAGES.contains(&self)
    }

    /// Returns the name of the metric in the official checker, if it has one. Of several figures, it is the first.
    #[must_use]
    pub const fn official_name(self) -> &'static str {
        match self {
            Self::Top1 => "acc",
            Self::SquadF1 => "F1",
            Self::CocoMap => "mAP",
            Self::Dice => "DICE",
            Self::Wer => "WER",
            Self::EnglishWer => "ACCURACY",
            Self::Rouge => "ROUGE1",
            Self::ClipFid => "CLIP_SCORE",
            Self::Top5 => "top5",
            Self::Auc => "AUC",
            Self::MeanSquaredError => "MSE",
            Self::ExactMatch => "exact",
            Self::Script => "figure",
        }
    }
}
