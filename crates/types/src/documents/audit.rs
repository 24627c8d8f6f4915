//! The result of an audit in the record of its run. The verdict files are beside the record; this summary is readable without them.

use serde::{Deserialize, Serialize};

use super::AuditOf;

/// The result of an audit's run, compared with the runs that it audits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditResult {
    /// The audit and the runs that it repeats.
    #[serde(flatten)]
    pub of: AuditOf,
    /// Whether the audit passed: performance agrees, and so do the responses or, instead of them, the accuracies.
    pub passed: bool,
    /// The official script's output on performance, line by line.
    #[serde(default)]
    pub speeds: Vec<String>,
    /// The compared scores. `None` when the script refused to compare, and in records of earlier coordinators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<AuditedScores>,
    /// The two values because of which the script refused to compare, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mismatch: Option<String>,
    /// TEST01's comparison of responses.
    #[serde(default)]
    pub responses: Option<AuditedResponses>,
    /// TEST01's part III, for differing responses: comparison of accuracies instead of responses.
    #[serde(default)]
    pub accuracies: Vec<AccuracyDelta>,
    /// Observations that a reviewer would question. They do not affect the result.
    #[serde(default)]
    pub observations: Vec<String>,
    /// Why the audit could not be verified, if so.
    #[serde(default)]
    pub fault: Option<String>,
}

/// The scores that an audit's performance check compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditedScores {
    /// The score of the submission's run.
    pub reference: f64,
    /// The score of the audit's run.
    pub audited: f64,
    /// The unit of both: `ns`, `samples/s` or `queries/s`.
    pub unit: String,
    /// The accepted difference, in percent of the reference.
    pub tolerance_percent: u32,
    /// The direction in which the difference is limited.
    pub direction: LimitedDirection,
    /// Whether the difference is within the limit.
    pub passed: bool,
}

impl AuditedScores {
    /// Returns the difference of the audit's score from the reference, in percent of the reference.
    #[must_use]
    pub fn difference_percent(&self) -> f64 {
        (self.audited - self.reference) / self.reference * 100.0
    }
}

/// The direction in which a round limits the difference of two scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitedDirection {
    /// The score may be neither higher nor lower.
    Both,
    /// The score may not be higher.
    Higher,
    /// A rate may not be lower, a latency not higher.
    Worse,
}

/// TEST01's comparison of responses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditedResponses {
    /// Number of compared responses.
    pub compared: u64,
    /// Number of responses whose first element differs.
    pub differing: u64,
    /// Whether the comparison passed.
    pub passed: bool,
    /// Why responses differ, as far as the logs show it; one line per finding.
    #[serde(default)]
    pub explanation: Vec<String>,
}

/// One metric of TEST01's part III: the accuracy of the same samples in both runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccuracyDelta {
    /// The metric's official name, for example `acc`.
    pub metric: String,
    /// The value in the accuracy run; `None` when the accuracy script printed none.
    pub baseline: Option<f64>,
    /// The value in the audit's run.
    pub audited: Option<f64>,
    /// Largest accepted difference, in percent.
    pub limit_percent: f64,
    /// Whether the difference is within the limit.
    pub passed: bool,
}
