//! The plan of a tree. Results, audits, measurements and power sessions are added to it by the files of their names.

use std::collections::BTreeMap;

use super::{
    Request, StagedResult, StagingFinding, places::Places, planned_audit::PlannedAudit,
    power_session::Session, run::Run, tree::Files,
};

/// A tree while it is planned.
pub(super) struct Staging<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) places: Places,
    pub(super) runs: &'a [Run],
    /// Power sessions, taken or not.
    pub(super) power: Vec<Session>,
    pub(super) files: Files,
    /// `model_mapping.json`.
    pub(super) mapping: BTreeMap<String, String>,
    pub(super) results: Vec<StagedResult>,
    pub(super) audits: Vec<PlannedAudit<'a>>,
    pub(super) findings: Vec<StagingFinding>,
    pub(super) notes: Vec<String>,
}
