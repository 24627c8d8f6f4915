//! An audit that is verified after the logs of its result are staged.

use super::run::Run;
use crate::audit::Test;

/// An audit of the tree.
#[derive(Debug)]
pub(super) struct PlannedAudit<'a> {
    pub(super) test: Test,
    pub(super) run: &'a Run,
    /// The result's directory, relative to the submission's root.
    pub(super) results: String,
    /// The directory in which the audit's directory is created.
    pub(super) place: String,
}
