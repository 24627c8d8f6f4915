//! What `doctor` has found, as programs get it. Judges nothing: `findings.rs` does.

use regatta_types::documents::GpuFacts;
use serde::Serialize;

use super::description::SystemDescription;
use crate::facts::{board::Board, power::Power, sensors::Sensors, software::Software, system::System};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// A figure taken now would not be this board's.
    Unfit,
    /// It may cost speed, or a certain kind of run.
    Warning,
    /// Good to know.
    Note,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Its stable name.
    pub(crate) id: &'static str,
    /// How much it matters.
    pub(crate) severity: Severity,
    /// What was read.
    pub(crate) what: String,
    /// Why it matters.
    pub(crate) why: &'static str,
    /// The command that mends it, where a command can.
    pub(crate) mend: Option<String>,
}

/// Everything that `doctor` tells. Its JSON is a promise: fields are added, never renamed or removed, under one schema.
#[derive(Debug, Serialize)]
pub(crate) struct Examination {
    pub(super) schema: u32,
    /// Whether a measurement made now would be one of this board.
    pub(super) fit: bool,
    pub(super) findings: Vec<Finding>,
    pub(super) board: Board,
    /// What CUDA says of the GPUs; left out where it was not asked, as of another system's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gpus: Option<Vec<GpuFacts>>,
    pub(super) software: Software,
    pub(super) power: Power,
    pub(super) sensors: Sensors,
    pub(super) system: System,
    /// What goes into the official system description; what only people know is left empty.
    pub(super) system_description: SystemDescription,
}
