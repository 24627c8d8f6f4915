//! The error type for places where the official program ends with a traceback.

use super::super::python::Raised;

/// The reason of a traceback that ends the official program.
#[derive(Debug, Clone)]
pub(super) struct Crash(pub(super) String);

impl From<Raised> for Crash {
    fn from(Raised(reason): Raised) -> Self {
        Self(reason)
    }
}
