//! The documents of campaigns: plan, summary, progress. They are also their JSON form.

use std::collections::BTreeMap;

use regatta_types::{RunId, documents::EndCause};
use serde::Serialize;

use crate::{
    campaigns::{PlanEstimate, RunEstimate, TimeLeft},
    store::Placement,
};

/// The subject of a combination's runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct CellSubject {
    /// The combination's number.
    pub(crate) combination: u64,
    /// The benchmark.
    pub(crate) benchmark: String,
    /// The scenario.
    pub(crate) scenario: String,
    /// The mode.
    pub(crate) mode: String,
    /// The engine.
    pub(crate) engine: String,
    /// The device's state: a preset, or `own`.
    pub(crate) state: Option<String>,
    /// The variant of the settings.
    pub(crate) variant: Option<String>,
    /// The compliance test, if it is an audit.
    pub(crate) audit: Option<String>,
}

impl CellSubject {
    /// Formats it in one line.
    pub(crate) fn words(&self) -> String {
        let mut text = format!(
            "{} {} {}, {}",
            self.benchmark,
            self.scenario,
            self.audit.as_ref().unwrap_or(&self.mode),
            self.engine
        );
        for more in [&self.state, &self.variant].into_iter().flatten() {
            text.push_str(", ");
            text.push_str(more);
        }
        text
    }
}

/// The runs that a plan would request.
#[derive(Debug, Serialize)]
pub(crate) struct CampaignPlanDocument {
    /// The campaign's name.
    pub(crate) campaign: String,
    /// SHA-256 of the plan.
    pub(crate) plan_sha256: String,
    /// The seed of the order.
    pub(crate) seed: u64,
    /// The time after which no attempt begins, for a start now.
    pub(crate) deadline: Option<String>,
    /// The number of cells.
    pub(crate) cells: usize,
    /// The combinations.
    pub(crate) combinations: Vec<PlannedCombination>,
    /// The expected time of the campaign.
    pub(crate) estimate: PlanEstimate,
    /// The conditions that are missing now.
    pub(crate) missing: Vec<String>,
}

/// A combination of a plan.
#[derive(Debug, Serialize)]
pub(crate) struct PlannedCombination {
    /// The subject of its runs.
    #[serde(flatten)]
    pub(crate) subject: CellSubject,
    /// The choice of the device that takes its cells.
    pub(crate) placement: Placement,
    /// The devices that may take it, by name.
    pub(crate) devices: Vec<String>,
    /// The number of times that it is run, on each of its devices if it is placed on each.
    pub(crate) repeat: u64,
    /// The number of its cells.
    pub(crate) cells: usize,
    /// The expected time of one run.
    #[serde(flatten)]
    pub(crate) time: RunEstimate,
}

/// A campaign in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CampaignSummary {
    /// Its name.
    pub(crate) campaign: String,
    /// `running`, `paused`, `aborting`, `aborted` or `ended`.
    pub(crate) state: &'static str,
    /// The time when it was started.
    pub(crate) started: String,
    /// The time when it ended.
    pub(crate) ended: Option<String>,
    /// The time after which no attempt begins.
    pub(crate) deadline: Option<String>,
    /// The number of cells.
    pub(crate) cells: u64,
    /// Cells with a good run.
    pub(crate) good: u64,
    /// Cells with an open attempt.
    pub(crate) running: u64,
    /// Cells that need an attempt.
    pub(crate) waiting: u64,
    /// Failed cells.
    pub(crate) failed: u64,
    /// Skipped cells.
    pub(crate) skipped: u64,
}

/// The progress of a campaign.
#[derive(Debug, Serialize)]
pub(crate) struct CampaignStatus {
    /// The same in one line.
    #[serde(flatten)]
    pub(crate) summary: CampaignSummary,
    /// The number of attempts so far.
    pub(crate) attempts: usize,
    /// Failed cells by cause.
    pub(crate) causes: BTreeMap<EndCause, u64>,
    /// The reason why cells were skipped.
    pub(crate) skipped_because: Option<String>,
    /// The time that it still takes. `None` when it does not run, and before the first good attempt.
    pub(crate) time_left: Option<TimeLeft>,
    /// Its devices, by name.
    pub(crate) devices: Vec<CampaignDevice>,
    /// Its failed cells, in the campaign's order.
    pub(crate) failed_cells: Vec<FailedCell>,
    /// The things that need attention.
    pub(crate) attention: Vec<String>,
}

/// A device of a campaign.
#[derive(Debug, Serialize)]
pub(crate) struct CampaignDevice {
    /// Its id.
    pub(crate) device: String,
    /// Its name.
    pub(crate) name: String,
    /// `busy`, `idle`, `offline` or `duplicated`.
    pub(crate) state: &'static str,
    /// The cell of its open attempt.
    pub(crate) cell: Option<u64>,
    /// The subject of that cell's runs.
    pub(crate) subject: Option<CellSubject>,
    /// The run of its open attempt.
    pub(crate) run: Option<RunId>,
    /// The time when that attempt was requested.
    pub(crate) since: Option<String>,
    /// The condition that that run waits for before it starts: its gate, or its assets.
    pub(crate) waits_for: Option<String>,
    /// Its good attempts.
    pub(crate) good: usize,
    /// Its failed attempts.
    pub(crate) failed: usize,
}

/// A failed cell.
#[derive(Debug, Serialize)]
pub(crate) struct FailedCell {
    /// Its number.
    pub(crate) cell: u64,
    /// The subject of its runs.
    #[serde(flatten)]
    pub(crate) subject: CellSubject,
    /// Its repetition.
    pub(crate) repetition: u64,
    /// The cause of its failure.
    pub(crate) cause: EndCause,
    /// The same as a sentence.
    pub(crate) reason: String,
}
