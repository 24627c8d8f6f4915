//! The types of `doctor`'s JSON. They judge nothing and print nothing.

use regatta_types::documents::GpuFacts;
use serde::Serialize;

use super::description::SystemDescription;
use crate::{
    board::{Board, Kind},
    power::Power,
    sensors::Sensors,
    software::Software,
    system::System,
};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// A measurement now would not be representative of this board.
    Unfit,
    /// It may reduce performance or prevent a kind of run.
    Warning,
    /// Information.
    Note,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Its stable id.
    pub(crate) id: &'static str,
    pub(crate) severity: Severity,
    /// What was read.
    pub(crate) what: String,
    /// Why it matters.
    pub(crate) why: &'static str,
    /// The command that fixes it, if there is one.
    // The key in the stable JSON.
    pub(crate) fix: Option<String>,
}

impl Finding {
    /// Returns a finding if `is_so`.
    pub(super) fn when(
        is_so: bool,
        id: &'static str,
        severity: Severity,
        what: impl FnOnce() -> String,
        why: &'static str,
        fix: Option<&str>,
    ) -> Option<Self> {
        is_so.then(|| Self {
            id,
            severity,
            what: what(),
            why,
            fix: fix.map(str::to_owned),
        })
    }
}

/// The complete output of `doctor`. Its JSON is stable: within a schema, fields are added, but never renamed or
/// removed.
#[derive(Debug, Serialize)]
pub struct Examination {
    pub(super) schema: u32,
    /// Whether the board is fit to measure now.
    pub(super) fit: bool,
    pub(super) findings: Vec<Finding>,
    pub(super) board: Board,
    /// The GPUs, as CUDA reports them. Omitted if CUDA was not queried, for example for another system's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gpus: Option<Vec<GpuFacts>>,
    pub(super) software: Software,
    pub(super) power: Power,
    pub(super) sensors: Sensors,
    pub(super) system: System,
    /// The draft of the official system description. Fields that only people know are empty.
    pub(super) system_description: SystemDescription,
}

impl Examination {
    /// Whether the board is a Jetson.
    pub(super) fn is_jetson(&self) -> bool {
        self.board.kind == Kind::Jetson
    }

    /// Returns whether no finding makes a measurement now unrepresentative of the board.
    pub const fn is_fit(&self) -> bool {
        self.fit
    }
}
