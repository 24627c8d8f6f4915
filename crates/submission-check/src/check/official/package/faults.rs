//! The errors that the package's checks of a scenario find.

use super::super::{path_fault::PathFault, python::Raised};

/// The errors of a check. The list is empty if the check passes.
pub(super) type Faults = Vec<PathFault>;

/// Converts an exception into an error of the check, because the package catches it.
pub(super) fn raised(path: &str, raised: Raised) -> PathFault {
    PathFault::new(path, raised.0)
}
