//! The accuracy metric of a benchmark and its bounds, as a benchmark's file describes them. Computes nothing.

use serde::{Deserialize, Serialize};

/// The accuracy metric of a benchmark and its target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// The metric.
    pub metric: AccuracyMetric,
    /// The reference model's value in the metric's unit.
    pub reference: f64,
    /// The fraction of the reference that a run must reach, for example 0.99.
    pub factor: f64,
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

impl Accuracy {
    /// Returns the target value: a product of doubles, as the official checker computes it.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.reference * self.factor
    }
}

/// A bound on a figure of the accuracy metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[serde(deny_unknown_fields)]
pub struct SummaryFiles {
    /// The expected summaries: a JSON array of objects, whose `output` is the text.
    pub expected: String,
    /// The directory of the model's `tokenizer.json` and `tokenizer_config.json`.
    pub tokenizer: String,
    /// The option of the reference's script for that directory. Without it, the script has a tokenizer of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer_option: Option<String>,
    /// The directory of a language in NLTK's `punkt_tab`.
    pub sentences: String,
}

/// What the classes of detections are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DetectionClasses {
    /// Categories of the annotations.
    #[default]
    Categories,
    /// Positions among the categories of the annotations, from 1, in the order of the file. The option `--use-inv-map` of `accuracy-coco.py` reads them.
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
}

impl AccuracyMetric {
    /// Returns the name of the metric in the official checker. Of several figures, it is the first.
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
        }
    }
}
