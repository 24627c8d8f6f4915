//! The reason why a check of a session fails, as its report states it.

/// Why a check of a power session fails, or why a file of the session cannot be evaluated. Its text is the finding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CheckFailure(pub(super) String);

impl From<String> for CheckFailure {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl From<&str> for CheckFailure {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}
