//! Verifies audits (compliance tests) as the round's official scripts do.
//!
//! [`verify`] reads the submission's runs and the audit's run, and applies the round's parameters
//! (`regatta_catalogue::procedures::Audit`). It writes the files of `run_verification.py` to the same places:
//! `<output>/TESTxx/{verify_accuracy.txt, verify_performance.txt, accuracy/, performance/run_1/}`. It also explains why a TEST01
//! comparison fails ([`explain`]), and reports what the official scripts do not check ([`Observation`]). [`part_three`] is
//! TEST01's part III, which compares accuracies instead of responses.
//!
//! Two things are deliberately left out of `verify_performance.txt`. One is the time-stamped log lines with absolute paths, which
//! the scripts of v6.0 write through Python's logging. The other is tracebacks. This crate does not run audits.

mod accuracy;
mod baseline;
mod element;
mod error;
pub mod explain;
mod layout;
mod observe;
pub mod part_three;
mod performance;
mod python;
mod request;
mod responses;
mod score;

use std::path::PathBuf;

pub use accuracy::{AccuracyCounts, Comparison, Mismatch, compare_accuracy};
pub use baseline::{Baseline, write_baseline};
pub use element::{Dtype, UnknownDtype};
pub use error::AuditError;
pub use observe::Observation;
pub use performance::{PerformanceVerdict, compare_performance};
use regatta_types::documents::AccuracyDelta;
pub use request::{AuditRequest, Audited, Test};

/// The result of a verification.
#[derive(Debug)]
pub struct AuditReport {
    /// TEST01's comparison of responses, or `None` for the other audits.
    pub accuracy: Option<Comparison>,
    /// The results of [`part_three`], if the caller ran it.
    pub accuracies: Vec<AccuracyDelta>,
    /// The comparison of performance.
    pub performance: PerformanceVerdict,
    /// Observations that a reviewer would make and the official scripts do not.
    pub observations: Vec<Observation>,
    /// The directory that was written.
    pub directory: PathBuf,
}

impl AuditReport {
    /// Returns whether responses differ, so that accuracies must be compared instead.
    #[must_use]
    pub fn needs_accuracies(&self) -> bool {
        self.accuracy
            .as_ref()
            .is_some_and(|accuracy| !accuracy.counts.passed)
    }

    /// Returns whether the audit passes: performance agrees, and so do responses or, instead of them, accuracies.
    #[must_use]
    pub fn passed(&self) -> bool {
        let accuracies_agree = !self.accuracies.is_empty() && self.accuracies.iter().all(|one| one.passed);
        self.performance.passed && (!self.needs_accuracies() || accuracies_agree)
    }
}

/// Verifies an audit and writes its directory.
///
/// # Errors
/// Returns an error if the round does not have the audit, or if a log cannot be read or parsed. The error names the file. A
/// failed audit is a result and not an error; its files are written.
pub fn verify(request: &AuditRequest<'_>) -> Result<AuditReport, AuditError> {
    let rule = request
        .round
        .audits
        .get(request.test.name())
        .ok_or_else(|| AuditError::NotInRound {
            test: request.test.name(),
            round: request.round.name.clone(),
        })?;
    let performance = compare_performance(rule, &request.audited.performance, request.compliance)?;
    let accuracy = if request.test == Test::Test01 {
        Some(compare_accuracy(
            &request.accuracy_log(),
            &request.compliance_log(),
            request.dtype,
            rule.needs_a_match,
        )?)
    } else {
        None
    };
    let observations = observe::observe(request)?;
    let directory = layout::write(request, &performance, accuracy.as_ref())?;
    Ok(AuditReport {
        accuracy,
        accuracies: Vec::new(),
        performance,
        observations,
        directory,
    })
}
