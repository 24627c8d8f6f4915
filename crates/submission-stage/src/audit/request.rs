//! The input of a verification: the audit, the runs and the round.

use std::path::{Path, PathBuf};

use regatta_catalogue::round::Round;
use regatta_mllog::read::file_name;

use super::{AuditError, Dtype};

/// An audit that can be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Compares responses of a performance run with those of the accuracy run, and its performance.
    Test01,
    /// Compares performance when the same sample is issued repeatedly, which detects caching.
    Test04,
    /// Compares performance with other seeds (until v4.1).
    Test05,
}

impl Test {
    /// Returns the audit's name, which is also the name of its directory.
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

    /// Parses a name, ignoring case.
    fn from_str(name: &str) -> Result<Self, AuditError> {
        [Self::Test01, Self::Test04, Self::Test05]
            .into_iter()
            .find(|test| test.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| AuditError::UnknownTest {
                name: name.to_owned(),
            })
    }
}

/// The submission's runs with which an audit is compared. Their accuracy log must be complete, so audits precede truncation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// The directory of the performance run's logs.
    pub performance: PathBuf,
    /// The directory of the accuracy run's logs.
    pub accuracy: PathBuf,
}

impl Audited {
    /// Returns the runs in a scenario's results directory, with the layout that `run_verification.py` expects.
    #[must_use]
    pub fn in_results(results: &Path) -> Self {
        Self {
            performance: results.join("performance").join("run_1"),
            accuracy: results.join("accuracy"),
        }
    }
}

/// The input of a verification.
#[derive(Debug, Clone, Copy)]
pub struct AuditRequest<'a> {
    /// The audit.
    pub test: Test,
    /// The submission's runs.
    pub audited: &'a Audited,
    /// The directory of the audit run's three logs.
    pub compliance: &'a Path,
    /// The directory in which `TESTxx` is written.
    pub output: &'a Path,
    /// The data type of a response's first element in TEST01.
    pub dtype: Dtype,
    pub round: &'a Round,
}

impl AuditRequest<'_> {
    /// Returns the directory that is written.
    pub(super) fn directory(&self) -> PathBuf {
        self.output.join(self.test.name())
    }

    /// Returns the path of the accuracy run's accuracy log.
    #[must_use]
    pub fn accuracy_log(&self) -> PathBuf {
        self.audited.accuracy.join(file_name::ACCURACY)
    }

    /// Returns the path of the accuracy log of the audit's run.
    #[must_use]
    pub fn compliance_log(&self) -> PathBuf {
        self.compliance.join(file_name::ACCURACY)
    }
}
