//! What the package's checks of a scenario find.

use super::super::python::Raised;

/// The outcome of a check: paths and texts, none when it passes.
pub(super) type Faults = Vec<(String, String)>;

/// Converts an exception into a fault: the package catches it, and the check has failed.
pub(super) fn raised(path: &str, raised: Raised) -> (String, String) {
    (path.to_owned(), raised.0)
}
