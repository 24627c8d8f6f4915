//! The documents of campaigns: plan, summary, progress. They are also their JSON form.

use std::collections::BTreeMap;

use regatta_types::{RunId, documents::EndCause};
use serde::Serialize;

use regatta_campaigns::{PlanEstimate, RunEstimate, TimeLeft};
use regatta_lab_store::{DeviceActivity, Placement};

/// The subject of a combination's runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CellSubject {
    /// The combination's number.
    pub combination: u64,
    pub benchmark: String,
    pub scenario: String,
    pub mode: String,
    pub engine: String,
    /// The device's state: a preset, or `own`.
    pub state: Option<String>,
    /// The variant of the settings.
    pub variant: Option<String>,
    /// The compliance test, if it is an audit.
    pub audit: Option<String>,
}

impl CellSubject {
    /// Formats it in one line.
    pub fn words(&self) -> String {
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
pub struct CampaignPlanDocument {
    /// The campaign's name.
    pub campaign: String,
    /// SHA-256 of the plan.
    pub plan_sha256: String,
    /// The seed of the order.
    pub seed: u64,
    /// The time after which no attempt begins, for a start now.
    pub deadline: Option<String>,
    pub cells: usize,
    pub combinations: Vec<PlannedCombination>,
    /// The expected time of the campaign.
    pub estimate: PlanEstimate,
    /// The conditions that are missing now.
    pub missing: Vec<String>,
}

/// A combination of a plan.
#[derive(Debug, Serialize)]
pub struct PlannedCombination {
    /// The subject of its runs.
    #[serde(flatten)]
    pub subject: CellSubject,
    /// The choice of the device that takes its cells.
    pub placement: Placement,
    /// The devices that may take it, by name.
    pub devices: Vec<String>,
    /// The number of times that it is run, on each of its devices if it is placed on each.
    pub repeat: u64,
    pub cells: usize,
    /// The expected time of one run.
    #[serde(flatten)]
    pub time: RunEstimate,
}

/// A campaign in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CampaignSummary {
    /// Its name.
    pub campaign: String,
    /// `running`, `paused`, `aborting`, `aborted` or `ended`.
    pub state: &'static str,
    /// The time when it was started.
    pub started: String,
    /// The time when it ended.
    pub ended: Option<String>,
    /// The time after which no attempt begins.
    pub deadline: Option<String>,
    pub cells: u64,
    /// Cells with a good run.
    pub good: u64,
    /// Cells with an open attempt.
    pub running: u64,
    /// Cells that need an attempt.
    pub waiting: u64,
    /// Failed cells.
    pub failed: u64,
    /// Skipped cells.
    pub skipped: u64,
}

/// The progress of a campaign.
#[derive(Debug, Serialize)]
pub struct CampaignStatus {
    /// The same in one line.
    #[serde(flatten)]
    pub summary: CampaignSummary,
    /// The number of attempts so far.
    pub attempts: usize,
    /// Failed cells by cause.
    pub causes: BTreeMap<EndCause, u64>,
    /// The reason why cells were skipped.
    pub skipped_because: Option<String>,
    /// The time that it still takes. `None` when it does not run, and before the first good attempt.
    pub time_left: Option<TimeLeft>,
    /// Its devices, by name.
    pub devices: Vec<CampaignDevice>,
    /// Its failed cells, in the campaign's order.
    pub failed_cells: Vec<FailedCell>,
    /// The things that need attention.
    pub attention: Vec<String>,
}

/// A device of a campaign.
#[derive(Debug, Serialize)]
pub struct CampaignDevice {
    /// Its id.
    pub device: String,
    pub name: String,
    pub state: DeviceActivity,
    /// The cell of its open attempt.
    pub cell: Option<u64>,
    /// The subject of that cell's runs.
    pub subject: Option<CellSubject>,
    /// The run of its open attempt.
    pub run: Option<RunId>,
    /// The time when that attempt was requested.
    pub since: Option<String>,
    /// The condition that that run waits for before it starts: its gate, or its assets.
    pub waits_for: Option<String>,
    /// Its good attempts.
    pub good: usize,
    /// Its failed attempts.
    pub failed: usize,
}

/// A failed cell.
#[derive(Debug, Serialize)]
pub struct FailedCell {
    /// Its number.
    pub cell: u64,
    /// The subject of its runs.
    #[serde(flatten)]
    pub subject: CellSubject,
    pub repetition: u64,
    /// The device of its last attempt.
    pub device: Option<String>,
    /// The cause of its failure.
    pub cause: EndCause,
    /// The same as a sentence.
    pub reason: String,
}
