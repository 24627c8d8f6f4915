//! The error type for places where the official program ends with a traceback.

use super::python::Raised;
use crate::check::endpoints::LogsError;

/// The reason of a traceback that ends the official program.
#[derive(Debug, Clone)]
pub(super) struct Crash(pub(super) String);

impl From<Raised> for Crash {
    fn from(Raised(reason): Raised) -> Self {
        Self(reason)
    }
}

impl From<LogsError> for Crash {
    fn from(error: LogsError) -> Self {
        Self(error.to_string())
    }
}
