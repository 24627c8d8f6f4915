//! Formats campaigns: their plan, list, status and report.

use jiff::Timestamp;
use regatta_text::escape;
use regatta_types::documents::EndCause;

use super::plain;
use regatta_campaigns::{PlanEstimate, RunEstimate, TimeBasis};
use regatta_lab_store::{AttemptRow, RunRow};
use regatta_lab_views::{
    documents::{CampaignDevice, CampaignPlanDocument, CampaignStatus, CampaignSummary, CellSubject},
    wording::{ago, campaign_counts, campaign_time_left, figure, rough_duration, run_text, short_id, time},
};

/// The most failed cells that the status lists.
const MAX_FAILED: usize = 8;

/// An attempt of a report, or the end of a cell that no attempt explains.
pub(crate) struct ReportLine {
    pub(crate) cell: u64,
    pub(crate) repetition: u64,
    /// The subject of its runs.
    pub(crate) subject: CellSubject,
    /// Its state: that of the cell, not of the attempt.
    pub(crate) cell_state: &'static str,
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
    const MAX: usize = 4;
    match names.get(..MAX) {
        Some(first) if names.len() > MAX + 1 => {
            format!("{} and {} more", first.join(", "), names.len() - MAX)
        }
        _ => names.join(", "),
    }
}

fn run_time(time: &RunEstimate) -> String {
    let Some(seconds) = time.seconds else {
        return "unknown".to_owned();
    };
    let least = time.least_seconds.filter(|least| *least < seconds);
    let least = least.map_or_else(String::new, |least| {
        format!(", at least {}", rough_duration(least))
    });
    match time.basis {
        TimeBasis::PastRuns => format!("{}{least} (past runs)", figure::duration(seconds)),
        TimeBasis::ExpectedRate => format!("about {}{least} (expected rate)", rough_duration(seconds)),
        TimeBasis::Settings | TimeBasis::None => format!("at least {}", rough_duration(seconds)),
    }
}

fn plan_time(estimate: &PlanEstimate) -> Vec<String> {
    let mut lines = vec![format!(
        "takes about {} with all devices at work, plus preparation, delivery and retries",
        rough_duration(estimate.expected_seconds)
    )];
    let bases: Vec<String> = [
        (estimate.cells_by_past_runs, "by past runs on these devices"),
        (
            estimate.cells_by_expected_rate,
            "by the rate that their settings expect",
        ),
        (estimate.cells_by_settings, "by their shortest duration"),
        (estimate.cells_without_basis, "without an estimate yet"),
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
            device.state.as_str().to_owned(),
            cell,
            since,
            device.good.to_string(),
            device.failed.to_string(),
        ]
    });
    plain(["device", "state", "cell", "requested", "good", "failed"], lines)
}

fn failed_cells(status: &CampaignStatus) -> Vec<String> {
    let newest = status.failed_cells.iter().rev().take(MAX_FAILED).rev();
    let mut lines: Vec<String> = newest
        .map(|cell| {
            let device = cell
                .device
                .as_ref()
                .map_or_else(String::new, |name| format!(" on {}", escape(name)));
            format!(
                "cell {} failed{device} ({}): {}, repetition {}: {}",
                cell.cell,
                cell.cause,
                cell.subject.words(),
                cell.repetition,
                escape(&cell.reason)
            )
        })
        .collect();
    let hidden = status.failed_cells.len().saturating_sub(MAX_FAILED);
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
                .map_or_else(String::new, short_id),
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
