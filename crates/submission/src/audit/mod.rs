//! Audits (compliance tests) verified as the round's official scripts verify them.
//!
//! [`verify`] takes the submission's run and the audit's run, judges by the round's parameters
//! (`regatta_rules::procedures::Audit`) and writes what `run_verification.py` writes, where it writes it:
//! `<output>/TESTxx/{verify_accuracy.txt, verify_performance.txt, accuracy/, performance/run_1/}`. Besides, it says why a
//! TEST01 comparison fails ([`explain`]) and what the official scripts do not look at ([`Observation`]).
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
mod performance;
mod python;
mod responses;
mod score;

use std::path::{Path, PathBuf};

use regatta_mllog::read::file_name;
use regatta_rules::round::Round;

pub use accuracy::{AccuracyCounts, Comparison, Mismatch, compare_accuracy};
pub use baseline::{Baseline, write_baseline};
pub use element::Dtype;
pub use error::AuditError;
pub use observe::Observation;
pub use performance::{PerformanceVerdict, compare_performance};

/// An audit that can be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Responses of a performance run against those of the accuracy run, and its speed.
    Test01,
    /// Speed when one sample is asked for again and again: nothing may be cached.
    Test04,
    /// Speed with other seeds (until v4.1).
    Test05,
}

impl Test {
    /// The audit's name, which is also its directory's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Test01 => "TEST01",
            Self::Test04 => "TEST04",
            Self::Test05 => "TEST05",
        }
    }
}

impl std::str::FromStr for Test {
    type Err = AuditError;

    fn from_str(given: &str) -> Result<Self, AuditError> {
        [Self::Test01, Self::Test04, Self::Test05]
            .into_iter()
            .find(|test| test.name() == given)
            .ok_or_else(|| AuditError::UnknownTest {
                given: given.to_owned(),
            })
    }
}

/// What is to be verified, in the terms of `run_verification.py`.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Which audit.
    pub test: Test,
    /// Holds `accuracy/` and `performance/run_1/` of the submission's run.
    pub results: &'a Path,
    /// Holds the audit run's three logs.
    pub compliance: &'a Path,
    /// Gets the directory `TESTxx`.
    pub output: &'a Path,
    /// How TEST01 reads a response's first element.
    pub dtype: Dtype,
    /// The round.
    pub round: &'a Round,
}

/// What a verification came to.
#[derive(Debug)]
pub struct Report {
    /// TEST01's comparison of responses; `None` for the other audits.
    pub accuracy: Option<Comparison>,
    /// The comparison of speeds.
    pub performance: PerformanceVerdict,
    /// What the official scripts do not look at and a reviewer would.
    pub observations: Vec<Observation>,
    /// The directory that was written.
    pub directory: PathBuf,
}

impl Report {
    /// Whether the audit is passed as it stands. A TEST01 whose responses differ may yet pass by its part III.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.performance.passed
            && self
                .accuracy
                .as_ref()
                .is_none_or(|accuracy| accuracy.counts.passed)
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
    let run = request.results.join("performance").join("run_1");
    let performance = compare_performance(rule, &run, request.compliance)?;
    let accuracy = if request.test == Test::Test01 {
        let reference = request.results.join("accuracy").join(file_name::ACCURACY);
        let audited = request.compliance.join(file_name::ACCURACY);
        Some(compare_accuracy(
            &reference,
            &audited,
            request.dtype,
            rule.needs_a_match,
        )?)
    } else {
        None
    };
    let observations = observe::observe(request, &run)?;
    let directory = layout::write(request, &performance, accuracy.as_ref())?;
    Ok(Report {
        accuracy,
        performance,
        observations,
        directory,
    })
}
