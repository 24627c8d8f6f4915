//! Where the official program ends with a traceback.

use super::super::python::Raised;

/// The reason of a traceback, which ends the official program.
#[derive(Debug, Clone)]
pub(super) struct Crash(pub(super) String);

impl From<Raised> for Crash {
    fn from(Raised(reason): Raised) -> Self {
        Self(reason)
    }
}
