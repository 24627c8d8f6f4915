//! The report of a strict check.

use serde::Serialize;

use super::facts::Facts;
use crate::check::finding::{Finding, Severity};

/// One result of a submission, as in the JSON and HTML reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultRow {
    /// The division: `closed`, `open` or `network`.
    pub division: String,
    /// The name of the submitter's directory.
    pub submitter: String,
    /// The name of the system's directory.
    pub system: String,
    /// The name of the benchmark's directory.
    pub model: String,
    /// The scenario's name.
    pub scenario: String,
    /// The result, or `None` if the logs do not contain one.
    pub result: Option<f64>,
    /// The units of the result.
    pub units: String,
    /// Whether this row is the power metric of a result.
    pub power: bool,
    /// Whether the check found no error for this result.
    pub accepted: bool,
}

/// The results, findings and facts of a strict check.
#[derive(Debug, Clone, Default)]
pub struct StrictReport {
    /// The results, in path order.
    pub results: Vec<ResultRow>,
    /// The findings, errors first.
    pub findings: Vec<Finding>,
    /// The facts from each scenario's logs.
    pub facts: Vec<Facts>,
}

impl StrictReport {
    /// Returns whether the submission has results and the check found no errors.
    #[must_use]
    pub fn passes(&self) -> bool {
        !self.results.is_empty()
            && self
                .findings
                .iter()
                .all(|finding| finding.severity != Severity::Error)
    }
}
