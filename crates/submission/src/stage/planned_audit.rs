//! An audit that is verified once the logs of its result are staged.

use super::run::Run;
use crate::audit::Test;

/// An audit that goes into the tree.
#[derive(Debug)]
pub(super) struct PlannedAudit<'a> {
    pub(super) test: Test,
    pub(super) run: &'a Run,
    /// The result's directory, from the submission's root on.
    pub(super) results: String,
    /// The directory that gets the audit's.
    pub(super) place: String,
}
