//! Audits (compliance tests) verified as the round's official scripts verify them.
//!
//! [`verify`] takes the submission's runs and the audit's run, judges by the round's parameters
//! (`regatta_config::procedures::Audit`) and writes what `run_verification.py` writes, where it writes it:
//! `<output>/TESTxx/{verify_accuracy.txt, verify_performance.txt, accuracy/, performance/run_1/}`. Besides, it says why a
//! TEST01 comparison fails ([`explain`]) and what the official scripts do not look at ([`Observation`]). TEST01's part
//! III, accuracies instead of responses, is [`part_three`].
//!
//! Two things are left out of `verify_performance.txt` on purpose: the time-stamped log lines with absolute paths that
//! the scripts of v6.0 let in from Python's logging, and tracebacks. Running an audit is not this crate's part.

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
pub use request::{Audited, Request, Test};

/// What a verification came to.
#[derive(Debug)]
pub struct Report {
    /// TEST01's comparison of responses; `None` for the other audits.
    pub accuracy: Option<Comparison>,
    /// What [`part_three`] came to, where the caller has asked for it.
    pub accuracies: Vec<AccuracyDelta>,
    /// The comparison of speeds.
    pub performance: PerformanceVerdict,
    /// What the official scripts do not look at and a reviewer would.
    pub observations: Vec<Observation>,
    /// The directory that was written.
    pub directory: PathBuf,
}

impl Report {
    /// Whether responses differ, so that accuracies must be compared in their place.
    #[must_use]
    pub fn needs_accuracies(&self) -> bool {
        self.accuracy
            .as_ref()
            .is_some_and(|accuracy| !accuracy.counts.passed)
    }

    /// Whether the audit is passed: speeds agree, and responses or, in their place, accuracies.
    #[must_use]
    pub fn passed(&self) -> bool {
        let accuracies_agree = !self.accuracies.is_empty() && self.accuracies.iter().all(|one| one.passed);
        self.performance.passed && (!self.needs_accuracies() || accuracies_agree)
    }
}

/// Verifies an audit and writes its directory.
///
/// # Errors
/// When the round does not have the audit, or a log cannot be read or is none: the place is in the error. A failed audit
/// is an answer, and its files are written.
pub fn verify(request: &Request<'_>) -> Result<Report, AuditError> {
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
    Ok(Report {
        accuracy,
        accuracies: Vec::new(),
        performance,
        observations,
        directory,
    })
}
