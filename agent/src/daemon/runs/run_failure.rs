//! Why a run fails before or while it is measured.

/// The reason of a failed run, as its state has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunFailure(pub(crate) String);

impl RunFailure {
    /// Returns the failure that an error causes, with the errors behind it.
    pub(crate) fn of(error: impl Into<anyhow::Error>) -> Self {
        Self::of_chain(&error.into())
    }

    fn of_chain(error: &anyhow::Error) -> Self {
        Self(format!("{error:#}"))
    }
}

impl From<String> for RunFailure {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}
