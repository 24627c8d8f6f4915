//! The refusal of a requested operation.

use regatta_lab_store::StoreError;

/// An operation that the state of the lab does not permit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, in a sentence.
    pub sentence: String,
    /// The hint about what a user can do instead.
    pub hint: String,
}

/// The reason why an operation is not done.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// The state of the lab does not permit it.
    #[error("{}", .0.sentence)]
    Refused(Refusal),
    /// The store failed.
    #[error("the operation cannot be stored")]
    Store(#[from] StoreError),
}

impl OperationError {
    /// Creates a refusal with a hint.
    pub(super) fn refused(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused(Refusal {
            sentence: sentence.into(),
            hint: hint.into(),
        })
    }
}
