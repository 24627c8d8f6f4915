//! What a session measures, and how that can fail.

use std::{error::Error, fmt};

use regatta_types::documents::EndCause;

use super::phase::Part;

/// What a session measures.
pub trait Workload {
    /// The shell command that the official client runs, twice.
    fn command(&self) -> String;

    /// Called about ten times per second during the complete session, for work at the same time. An error ends the session, because it became
    /// worthless or a user requested its end.
    ///
    /// # Errors
    /// Returns the reason why the session ends.
    fn watch(&mut self) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// Is called about ten times per second while the command runs. Returns the line for the command's standard input, if there is one.
    ///
    /// # Errors
    /// Returns the reason why the workload failed. The session then ends.
    fn follow(&mut self, part: Part) -> Result<Option<String>, WorkloadError>;
}

/// An error of a workload. It displays as the error that it carries.
#[derive(Debug)]
pub struct WorkloadError {
    /// Whose failure it is.
    pub cause: EndCause,
    error: Box<dyn Error + Send + Sync>,
}

impl WorkloadError {
    /// Creates it from the workload's own error.
    pub fn new(cause: EndCause, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            cause,
            error: error.into(),
        }
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for WorkloadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}
