//! `record.json`: the coordinator's record of a run. It refers to the device's evidence and adds delivery and accuracy.

use serde::{Deserialize, Serialize};

use super::{AuditResult, Judgement, RunState, WindowCost};
use crate::{
    DeviceId, RunId, StreamName,
    accuracy_line::{dice_line, map_line, rouge_line, squad_line, top1_line, word_accuracy_line},
    benchmark::{AccuracyMetric, BoundSide, FurtherBound},
};

/// The coordinator's record of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Schema number of this document.
    pub schema: u16,
    /// The run.
    pub run: RunId,
    /// The device's id.
    pub device: DeviceId,
    /// The device's label when the record was written.
    pub device_name: String,
    /// Version and build of the coordinator that wrote the record.
    pub coordinator: String,
    /// When this record was written, RFC 3339 UTC.
    pub written: String,
    /// SHA-256 of the exact bytes of `spec.json`, hexadecimal.
    pub spec_sha256: String,
    /// SHA-256 of the exact bytes of `evidence.json`; `None` while it is missing.
    pub evidence_sha256: Option<String>,
    /// Whether the evidence's signature matches the device's key; `None` while either is missing.
    pub evidence_signature_valid: Option<bool>,
    /// When the first message arrived that LoadGen runs, by the coordinator's clock, RFC 3339 UTC; `None` if the device did not
    /// report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// The run's final state: from the signed evidence, or else the last one that the device reported.
    pub state: RunState,
    /// The delivered files.
    pub delivery: DeliveryProof,
    /// The accuracy, when the run logged responses and the metric is known.
    pub accuracy: Option<AccuracyResult>,
    /// Verdict and figures. `None` when the run's files were not read.
    #[serde(default)]
    pub judgement: Option<Judgement>,
    /// Facts that the coordinator could not determine, with the reason: an accuracy without labels, a summary that does not parse. Empty
    /// when all are determined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<String>,
    /// Differences between the device's messages or files and its evidence. Empty when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<String>,
    /// What may have disturbed the measurement, from the evidence's last attempt. Empty when there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The agent's own activity while LoadGen ran, from the evidence's last attempt.
    #[serde(default)]
    pub window: Option<WindowCost>,
    /// The audit's result, when the run is an audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<AuditResult>,
}
super::document!(Record, "run record", 1);

/// The delivered files of a run, compared with the device's evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryProof {
    /// Whether the coordinator has every file of the evidence with the evidence's hash.
    pub complete: bool,
    /// Bytes committed.
    pub bytes: u64,
    /// Every stream.
    pub streams: Vec<StreamProof>,
}

/// One delivered file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamProof {
    /// Its name.
    pub name: StreamName,
    /// Length in bytes as committed.
    pub bytes: u64,
    /// SHA-256 of the file on the coordinator's disk.
    pub sha256: Option<String>,
    /// SHA-256 that the device sent when it ended the stream.
    pub stated_sha256: Option<String>,
}

/// An accuracy value and its basis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccuracyResult {
    /// The metric's name: `top1`, `top5`, `f1`, `mAP`, `DICE`, `1-WER`, `ROUGE1`, `AUC`, `MSE`, `exact`, or `figure` for that of a script.
    pub metric: String,
    /// The value in percent; `DICE` and `AUC` are fractions, `MSE` and `figure` have their own unit.
    pub value: f64,
    /// Number of correct samples, or of questions with an exact answer.
    pub correct: Option<u64>,
    /// Number of evaluated samples, questions or images.
    pub total: u64,
    /// Number of samples without a response.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// Number of further responses to the same samples.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub duplicates: u64,
    /// The benchmark's target, when it has one.
    pub target: Option<f64>,
    /// The side of the target on which the value must be.
    #[serde(default, skip_serializing_if = "BoundSide::is_default")]
    pub side: BoundSide,
    /// The values of single classes, for `DICE`: kidney and tumour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<f64>,
    /// The further figures of a metric that has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherFigure>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A further figure of an accuracy metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FurtherFigure {
    /// The figure's official name, for example `ROUGE2`.
    pub figure: String,
    /// The value.
    pub value: f64,
    /// The smallest value that is accepted, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The largest value that is accepted, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

impl FurtherFigure {
    /// Returns a figure with a benchmark's bounds.
    #[must_use]
    pub fn new(figure: &str, value: f64, bounds: &[FurtherBound]) -> Self {
        let bound = |side| {
            let mut own = bounds.iter().filter(|bound| bound.figure == figure);
            own.find(|bound| bound.side == side).map(FurtherBound::value)
        };
        Self {
            figure: figure.to_owned(),
            value,
            at_least: bound(BoundSide::AtLeast),
            at_most: bound(BoundSide::AtMost),
        }
    }

    /// Whether the value is within its bounds.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.at_least.is_none_or(|bound| self.value >= bound)
            && self.at_most.is_none_or(|bound| self.value <= bound)
    }
}

impl AccuracyResult {
    /// The metric of transcripts: 100 % minus the word error rate, as the benchmarks' targets count it.
    pub const WORD_ACCURACY: &str = "1-WER";

    /// Returns the line that the metric's reference script prints for this value.
    #[must_use]
    pub fn official_line(&self) -> String {
        match (self.metric.as_str(), self.correct) {
            ("f1", Some(exact)) => squad_line(exact as usize, self.total as usize, self.value),
            (_, Some(correct)) => top1_line(self.value, correct as usize, self.total as usize),
            ("mAP", None) => map_line(self.value),
            (Self::WORD_ACCURACY, None) => word_accuracy_line(self.value),
            ("DICE", None) => dice_line(self.value, &self.classes),
            ("ROUGE1", None) => {
                let of = |name: &str| self.further.iter().find(|one| one.figure == name);
                let of = |name| of(name).map_or(f64::NAN, |figure| figure.value);
                let rouge = [self.value, of("ROUGE2"), of("ROUGEL"), of("ROUGELSUM")];
                rouge_line(rouge, of("GEN_LEN") as u64, self.total)
            }
            (metric, None) => format!("{metric}={}", self.value),
        }
    }

    /// Whether value and target are percentages.
    #[must_use]
    pub fn is_percentage(&self) -> bool {
        let mut others = AccuracyMetric::NOT_PERCENTAGES.iter();
        !others.any(|metric| metric.official_name() == self.metric)
    }

    /// Returns the reason why the responses are not a result for the complete dataset, if there is one. LoadGen writes one response for each
    /// sample; only MultiStream repeats some of them.
    #[must_use]
    pub fn incomplete(&self) -> Option<String> {
        if self.missing > 0 {
            let is_one = self.missing == 1;
            let samples = if is_one {
                "1 sample has"
            } else {
                &format!("{} samples have", self.missing)
            };
            return Some(format!("{samples} no response in the accuracy log"));
        }
        // `accuracy_kits.py` stops there; other scripts count the first, the last or all of them.
        (self.metric == "DICE" && self.duplicates > 0).then(|| {
            let responses = if self.duplicates == 1 {
                "response"
            } else {
                "responses"
            };
            format!(
                "{} {responses} in the accuracy log repeat a sample, which the reference script refuses",
                self.duplicates
            )
        })
    }

    /// Whether every sample has a response, the value reaches the target, and further figures are within their bounds. Without a target,
    /// the value is not compared.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.incomplete().is_none()
            && self
                .target
                .is_none_or(|target| self.side.admits(self.value, target))
            && self.further.iter().all(FurtherFigure::is_reached)
    }
}
