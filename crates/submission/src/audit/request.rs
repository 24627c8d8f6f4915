//! What is verified: the audit, the runs, the round.

use std::path::{Path, PathBuf};

use regatta_config::round::Round;
use regatta_mllog::read::file_name;

use super::{AuditError, Dtype};

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

    /// Takes a name in any case.
    fn from_str(name: &str) -> Result<Self, AuditError> {
        [Self::Test01, Self::Test04, Self::Test05]
            .into_iter()
            .find(|test| test.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| AuditError::UnknownTest {
                name: name.to_owned(),
            })
    }
}

/// The submission's runs that an audit is held against. Their accuracy log must be whole: audits come before truncation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// Holds the logs of the performance run.
    pub performance: PathBuf,
    /// Holds the logs of the accuracy run.
    pub accuracy: PathBuf,
}

impl Audited {
    /// The runs below a scenario's directory of results, as `run_verification.py` takes it.
    #[must_use]
    pub fn in_results(results: &Path) -> Self {
        Self {
            performance: results.join("performance").join("run_1"),
            accuracy: results.join("accuracy"),
        }
    }
}

/// A verification.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Which audit.
    pub test: Test,
    /// The submission's runs.
    pub audited: &'a Audited,
    /// Holds the audit run's three logs.
    pub compliance: &'a Path,
    /// Gets the directory `TESTxx`.
    pub output: &'a Path,
    /// How TEST01 reads a response's first element.
    pub dtype: Dtype,
    /// The round.
    pub round: &'a Round,
}

impl Request<'_> {
    /// The directory that is written.
    pub(super) fn directory(&self) -> PathBuf {
        self.output.join(self.test.name())
    }

    /// The accuracy run's log.
    #[must_use]
    pub fn accuracy_log(&self) -> PathBuf {
        self.audited.accuracy.join(file_name::ACCURACY)
    }

    /// The log of responses of the audit's run.
    #[must_use]
    pub fn compliance_log(&self) -> PathBuf {
        self.compliance.join(file_name::ACCURACY)
    }
}
