//! The errors that the package's checks of a scenario find.

use super::super::python::Raised;

/// The errors of a check as pairs of path and text. The list is empty if the check passes.
pub(super) type Faults = Vec<(String, String)>;

/// Converts an exception into an error of the check, because the package catches it.
pub(super) fn raised(path: &str, raised: Raised) -> (String, String) {
    (path.to_owned(), raised.0)
}
