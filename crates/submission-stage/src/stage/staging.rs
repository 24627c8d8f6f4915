//! The state of a tree while it is planned. `result`, `audits`, `measurements` and `power` add to it.

use std::collections::BTreeMap;

use super::{
    StagedResult, StagingFinding, StagingRequest, places::Places, planned_audit::PlannedAudit,
    power_session::Session, run::Run, tree::Files,
};

/// The plan of a tree.
pub(super) struct Staging<'a> {
    pub(super) request: &'a StagingRequest<'a>,
    pub(super) places: Places,
    pub(super) runs: &'a [Run],
    /// The power sessions, used or not.
    pub(super) power: Vec<Session>,
    pub(super) files: Files,
    /// The contents of `model_mapping.json`.
    pub(super) mapping: BTreeMap<String, String>,
    pub(super) results: Vec<StagedResult>,
    pub(super) audits: Vec<PlannedAudit<'a>>,
    pub(super) findings: Vec<StagingFinding>,
    pub(super) notes: Vec<String>,
}
