//! A checked line before a session: what was found, and what to do where it does not do.

use serde::Serialize;

/// One checked line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PreflightLine {
    /// What was checked.
    pub(crate) subject: String,
    /// Whether a session can succeed with it.
    pub(crate) passed: bool,
    /// What was found.
    pub(crate) found: String,
    /// What to do.
    pub(crate) hint: Option<String>,
}

impl PreflightLine {
    /// A line with which a session can succeed.
    pub(crate) fn passed(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            passed: true,
            found: found.into(),
            hint: None,
        }
    }

    /// A line with which no session can succeed.
    pub(crate) fn failed(
        subject: impl Into<String>,
        found: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            passed: false,
            hint: Some(hint.into()),
            ..Self::passed(subject, found)
        }
    }
}
