//! What a strict check reports.

use serde::Serialize;

use super::facts::Facts;
use crate::check::finding::{Finding, Severity};

/// A result of a submission, as the JSON and the page give it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultRow {
    /// `closed`, `open` or `network`.
    pub division: String,
    /// The submitter's directory.
    pub submitter: String,
    /// The system's directory.
    pub system: String,
    /// The benchmark's directory.
    pub model: String,
    /// The scenario.
    pub scenario: String,
    /// The result; `None` where there is none.
    pub result: Option<f64>,
    /// Its units.
    pub units: String,
    /// Whether this is the power metric beside a result.
    pub power: bool,
    /// Whether it is in order.
    pub accepted: bool,
}

/// The outcome of a strict check.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Results in the order of paths.
    pub results: Vec<ResultRow>,
    /// Findings, errors first.
    pub findings: Vec<Finding>,
    /// What the logs of each scenario say beside its result.
    pub facts: Vec<Facts>,
}

impl Report {
    /// Whether nothing stands against the submission.
    #[must_use]
    pub fn passes(&self) -> bool {
        !self.results.is_empty()
            && self
                .findings
                .iter()
                .all(|finding| finding.severity != Severity::Error)
    }
}
