//! Why a trial has no figure.

use std::fmt;

/// Why a choice of settings was not measured: its engine cannot be built, or its process failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TrialFailure(pub(super) String);

impl fmt::Display for TrialFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for TrialFailure {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl From<&str> for TrialFailure {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}
