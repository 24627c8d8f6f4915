//! One result of the checks before a session: the finding and, after a failure, the remedy.

use serde::Serialize;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PreflightLine {
    /// The subject of the check.
    pub subject: String,
    /// Whether a session can succeed with it.
    pub passed: bool,
    /// The result of the check.
    pub found: String,
    /// The hint about the fix.
    pub hint: Option<String>,
    /// Whether a failure may end by itself within seconds.
    #[serde(skip)]
    pub is_transient: bool,
}

impl PreflightLine {
    /// Returns the line of a check that passed.
    pub fn passed(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            passed: true,
            found: found.into(),
            hint: None,
            is_transient: false,
        }
    }

    /// Returns the line of a check that failed.
    pub fn failed(subject: impl Into<String>, found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            passed: false,
            hint: Some(hint.into()),
            ..Self::passed(subject, found)
        }
    }

    /// Returns the line of a failure that may end by itself.
    pub fn transient(self) -> Self {
        Self {
            is_transient: true,
            ..self
        }
    }
}
