//! Formats campaigns: their plan, list, status and report. The structures are also their JSON form.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regatta_text::escape;
use regatta_types::{RunId, documents::EndCause};
use serde::Serialize;

use super::{ago, figure, plain, run_text, time};
use crate::{
    campaigns::{PlanEstimate, RunEstimate, TimeBasis, TimeLeft},
    store::{AttemptRow, Placement, RunRow},
};

/// The most failed cells that the status lists.
const MOST_FAILED: usize = 8;

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

/// An attempt of a report, or the end of a cell that no attempt explains.
pub(crate) struct ReportLine {
    /// The cell.
    pub(crate) cell: u64,
    /// Its repetition.
    pub(crate) repetition: u64,
    /// The subject of its runs.
    pub(crate) subject: CellSubject,
    /// Its state: that of the cell, not of the attempt.
    pub(crate) cell_state: &'static str,
    /// The attempt.
    pub(crate) attempt: Option<AttemptRow>,
    /// The attempt's device, by name.
    pub(crate) device: Option<String>,
    /// The attempt's run.
    pub(crate) run: Option<RunRow>,
    /// The cause of the cell's failure.
    pub(crate) cause: Option<EndCause>,
    /// The same as a sentence, also for a skipped cell.
    pub(crate) reason: Option<String>,
}

/// Formats the runs of a plan.
pub(crate) fn campaign_plan(plan: &CampaignPlanDocument) -> String {
    let mut lines = vec![format!(
        "campaign {}: {} cells, seed {}",
        plan.campaign, plan.cells, plan.seed
    )];
    if let Some(deadline) = &plan.deadline {
        lines.push(format!("no attempt begins after {}", time(deadline)));
    }
    let rows = plan.combinations.iter().map(|combination| {
        [
            combination.subject.words(),
            format!(
                "{} of {}",
                combination.placement,
                short_list(&combination.devices)
            ),
            combination.repeat.to_string(),
            combination.cells.to_string(),
            run_time(&combination.time),
        ]
    });
    lines.push(String::new());
    lines.push(plain(["runs", "on", "repeat", "cells", "a run takes"], rows));
    lines.push(String::new());
    lines.extend(plan_time(&plan.estimate));
    lines.extend(plan.missing.iter().map(|missing| format!("missing: {missing}")));
    lines.join("\n")
}

/// Returns the names of devices, shortened when there are many.
fn short_list(names: &[String]) -> String {
    const MOST: usize = 4;
    match names.get(..MOST) {
        Some(first) if names.len() > MOST + 1 => {
            format!("{} and {} more", first.join(", "), names.len() - MOST)
        }
        _ => names.join(", "),
    }
}

fn run_time(time: &RunEstimate) -> String {
    match (time.seconds, time.basis) {
        (Some(seconds), TimeBasis::PastRuns) => format!("{} (past runs)", figure::duration(seconds)),
        (Some(seconds), _) => format!("at least {}", rough(seconds)),
        (None, _) => "unknown".to_owned(),
    }
}

fn plan_time(estimate: &PlanEstimate) -> Vec<String> {
    let mut lines = vec![format!(
        "takes at least {}, with all devices at work; preparation, delivery and retries come on top",
        rough(estimate.least_seconds)
    )];
    let bases: Vec<String> = [
        (estimate.cells_by_past_runs, "by past runs on these devices"),
        (estimate.cells_by_settings, "by their shortest duration"),
        (
            estimate.cells_without_basis,
            "not counted, because nothing is known",
        ),
    ]
    .into_iter()
    .filter(|(cells, _)| *cells > 0)
    .map(|(cells, basis)| format!("{cells} {basis}"))
    .collect();
    lines.push(format!("cells: {}", bases.join(", ")));
    lines
}

/// Formats campaigns, one line each.
pub(crate) fn campaigns(summaries: &[CampaignSummary]) -> String {
    if summaries.is_empty() {
        return "no campaign was started yet: `regatta campaign start PLAN.toml`".to_owned();
    }
    let lines = summaries.iter().map(|summary| {
        [
            summary.campaign.clone(),
            summary.state.to_owned(),
            time(&summary.started),
            campaign_counts(summary),
        ]
    });
    plain(["campaign", "state", "started", "cells"], lines)
}

/// Formats the number of cells by state.
pub(crate) fn campaign_counts(summary: &CampaignSummary) -> String {
    let counts = [
        (summary.good, "good"),
        (summary.running, "running"),
        (summary.waiting, "waiting"),
        (summary.failed, "failed"),
        (summary.skipped, "skipped"),
    ];
    let parts = counts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, word)| format!("{count} {word}")).collect();
    format!("{}: {}", summary.cells, parts.join(", "))
}

/// Formats the progress of a campaign for one screen.
pub(crate) fn campaign_status(status: &CampaignStatus) -> String {
    campaign_status_at(status, Timestamp::now())
}

fn campaign_status_at(status: &CampaignStatus, now: Timestamp) -> String {
    let summary = &status.summary;
    let mut facts = vec![(
        "campaign",
        format!(
            "{}, {}, started {}",
            summary.campaign,
            summary.state,
            time(&summary.started)
        ),
    )];
    facts.extend(summary.ended.as_ref().map(|ended| ("ended", time(ended))));
    facts.extend(
        summary
            .deadline
            .as_ref()
            .map(|deadline| ("deadline", time(deadline))),
    );
    facts.push(("cells", campaign_counts(summary)));
    facts.push(("attempts", status.attempts.to_string()));
    if !status.causes.is_empty() {
        let causes = status
            .causes
            .iter()
            .map(|(cause, count)| format!("{count} {cause}"));
        facts.push(("failed by", causes.collect::<Vec<_>>().join(", ")));
    }
    facts.extend(
        status
            .skipped_because
            .iter()
            .map(|why| ("skipped", escape(why).into_owned())),
    );
    if summary.ended.is_none() {
        facts.push(("time left", campaign_time_left(status)));
    }
    let mut lines: Vec<String> = facts
        .iter()
        .map(|(name, fact)| format!("{name:<10} {fact}"))
        .collect();
    lines.extend(status.attention.iter().map(|what| format!("attention: {what}")));
    lines.push(String::new());
    lines.push(devices(&status.devices, now));
    let waiting = status
        .devices
        .iter()
        .filter_map(|device| Some((device, device.waits_for.as_ref()?)));
    lines.extend(waiting.map(|(device, why)| format!("{}: {}", escape(&device.name), escape(why))));
    if !status.failed_cells.is_empty() {
        lines.push(String::new());
        lines.extend(failed_cells(status));
    }
    lines.join("\n")
}

/// Formats the time that a campaign still takes.
pub(crate) fn campaign_time_left(status: &CampaignStatus) -> String {
    let Some(left) = &status.time_left else {
        return "unknown".to_owned();
    };
    let mut text = format!(
        "about {} ({} to {}), from {} good attempt{}",
        rough(left.seconds),
        rough(left.low_seconds),
        rough(left.high_seconds),
        left.from_attempts,
        if left.from_attempts == 1 { "" } else { "s" }
    );
    if left.cells_without_basis > 0 {
        text.push_str(&format!(
            "; cells of kinds without one, which are not counted: {}",
            left.cells_without_basis
        ));
    }
    text
}

/// Formats an expected time, which is not known to the second.
fn rough(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..120 => format!("{whole} s"),
        120..7_200 => format!("{} min", whole.div_ceil(60)),
        _ => format!("{} h {} min", whole / 3_600, whole % 3_600 / 60),
    }
}

fn devices(devices: &[CampaignDevice], now: Timestamp) -> String {
    let lines = devices.iter().map(|device| {
        let cell = match (device.cell, &device.subject) {
            (Some(cell), Some(subject)) => format!("{cell}: {}", subject.words()),
            _ => String::new(),
        };
        let since = device
            .since
            .as_ref()
            .map_or_else(String::new, |since| ago(since, now));
        [
            device.name.clone(),
            device.state.to_owned(),
            cell,
            since,
            device.good.to_string(),
            device.failed.to_string(),
        ]
    });
    plain(["device", "state", "cell", "requested", "good", "failed"], lines)
}

fn failed_cells(status: &CampaignStatus) -> Vec<String> {
    let newest = status.failed_cells.iter().rev().take(MOST_FAILED).rev();
    let mut lines: Vec<String> = newest
        .map(|cell| {
            format!(
                "cell {} failed ({}): {}, repetition {}: {}",
                cell.cell,
                cell.cause,
                cell.subject.words(),
                cell.repetition,
                escape(&cell.reason)
            )
        })
        .collect();
    let hidden = status.failed_cells.len().saturating_sub(MOST_FAILED);
    if hidden > 0 {
        lines.push(format!(
            "{hidden} more failed: `regatta campaign report {}`",
            status.summary.campaign
        ));
    }
    lines
}

/// Formats every cell of a campaign with its attempts.
pub(crate) fn campaign_report(summary: &CampaignSummary, lines: &[ReportLine]) -> String {
    let rows = lines.iter().map(|line| {
        let attempt = line.attempt.as_ref();
        [
            line.cell.to_string(),
            line.cell_state.to_owned(),
            format!("{}, {}", line.subject.words(), line.repetition),
            line.device.clone().unwrap_or_default(),
            attempt.map_or_else(String::new, |attempt| attempt.number.to_string()),
            attempt
                .and_then(|attempt| attempt.run)
                .map_or_else(String::new, super::runs::short_id),
            result(line),
        ]
    });
    let table = plain(
        [
            "cell",
            "state",
            "runs, repetition",
            "device",
            "attempt",
            "run",
            "result",
        ],
        rows,
    );
    format!("{table}\n\n{}, {}", summary.campaign, campaign_counts(summary))
}

/// Returns the result of an attempt, or the reason why its cell ended without one.
fn result(line: &ReportLine) -> String {
    let Some(attempt) = &line.attempt else {
        let reason = line.reason.clone().unwrap_or_default();
        return match &line.cause {
            Some(cause) => format!("{cause}: {reason}"),
            None => reason,
        };
    };
    match (&attempt.cause, &attempt.ended, &line.run) {
        (Some(cause), _, _) => {
            let reason = attempt.reason.as_deref().unwrap_or_default();
            format!("{cause}: {reason}")
        }
        (None, None, _) => "running".to_owned(),
        (None, Some(_), Some(run)) => run_text::result(run),
        (None, Some(_), None) => "good; its run was removed".to_owned(),
    }
}
