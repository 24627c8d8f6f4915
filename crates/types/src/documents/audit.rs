//! What an audit came to, as the record of its run keeps it. The verdict files lie beside the record; this is what can be
//! read without them.

use serde::{Deserialize, Serialize};

use super::AuditOf;

/// The outcome of an audit's run, held against the runs that it audits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditResult {
    /// Which audit, of what.
    #[serde(flatten)]
    pub of: AuditOf,
    /// Whether it is passed: speeds agree, and responses or, in their place, accuracies.
    pub passed: bool,
    /// What the official script prints of the speeds, line by line.
    #[serde(default)]
    pub speeds: Vec<String>,
    /// TEST01's comparison of responses.
    #[serde(default)]
    pub responses: Option<AuditedResponses>,
    /// TEST01's part III, where responses differ: accuracies instead of responses.
    #[serde(default)]
    pub accuracies: Vec<AccuracyDelta>,
    /// What a reviewer would ask about; it judges nothing.
    #[serde(default)]
    pub observations: Vec<String>,
    /// Why the audit could not be verified, where that is so.
    #[serde(default)]
    pub fault: Option<String>,
}

/// TEST01's comparison of responses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditedResponses {
    /// Responses that were compared.
    pub compared: u64,
    /// Those whose first element differs.
    pub differing: u64,
    /// Whether the comparison is passed.
    pub passed: bool,
    /// Why they differ, as far as the logs tell; a line per finding.
    #[serde(default)]
    pub explanation: Vec<String>,
}

/// One metric of TEST01's part III: the accuracy of the same samples in both runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccuracyDelta {
    /// The metric's official name, such as `acc`.
    pub metric: String,
    /// In the accuracy run; `None` where the accuracy script gave none.
    pub baseline: Option<f64>,
    /// In the audit's run.
    pub audited: Option<f64>,
    /// How far they may lie apart, in percent.
    pub limit_percent: f64,
    /// Whether they are no further apart.
    pub passed: bool,
}
