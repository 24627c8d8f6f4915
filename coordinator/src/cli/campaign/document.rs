//! Gathers the documents of campaigns from the store: their plan, list, status and report. [`crate::tables`] formats them for people.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regatta_types::{
    DeviceId,
    documents::{EndCause, RunPhase},
};

use super::{Context, checked_plan::CheckedPlan};
use crate::{
    campaigns::time_left,
    exit::Failure,
    runs::{StateWords, Words},
    store::{
        AttemptRow, CampaignRow, CampaignState, CellRow, CellState, Combination, DeviceRow, RunRow, Store,
    },
    tables::{
        CampaignDevice, CampaignPlanDocument, CampaignStatus, CampaignSummary, CellSubject, FailedCell,
        PlannedCombination,
    },
    workspace::Workspace,
};

/// Returns what a plan would run.
pub(super) fn plan(checked: &CheckedPlan, store: &Store) -> Result<CampaignPlanDocument, Failure> {
    let names = store.device_names()?;
    let expanded = &checked.expanded;
    let mut combinations = Vec::new();
    for (index, combination) in expanded.combinations.iter().enumerate() {
        let cells = expanded.cells.iter();
        let Some(time) = checked.estimate.runs.get(index) else {
            continue;
        };
        combinations.push(PlannedCombination {
            subject: subject(combination)?,
            placement: combination.placement,
            devices: combination.devices.iter().map(|id| name_of(id, &names)).collect(),
            repeat: expanded.repeats.get(index).copied().unwrap_or(0),
            cells: cells
                .filter(|cell| cell.combination == combination.number)
                .count(),
            time: *time,
        });
    }
    Ok(CampaignPlanDocument {
        campaign: checked.plan.name.clone(),
        plan_sha256: checked.plan.sha256.clone(),
        seed: checked.plan.seed,
        deadline: expanded.campaign.deadline.clone(),
        cells: expanded.cells.len(),
        combinations,
        estimate: checked.estimate.clone(),
        missing: checked.missing.clone(),
    })
}

/// Returns a campaign in one line.
pub(super) fn summary(row: &CampaignRow, store: &Store) -> Result<CampaignSummary, Failure> {
    let counts: BTreeMap<CellState, u64> = store.count_cells(&row.name)?.into_iter().collect();
    let count = |state: CellState| counts.get(&state).copied().unwrap_or(0);
    let open = store.open_attempts()?;
    let running = open.iter().filter(|attempt| attempt.campaign == row.name).count() as u64;
    Ok(CampaignSummary {
        campaign: row.name.clone(),
        state: state(row),
        started: row.started.clone(),
        ended: row.ended.clone(),
        deadline: row.deadline.clone(),
        cells: counts.values().sum(),
        good: count(CellState::Good),
        running,
        waiting: count(CellState::Waiting).saturating_sub(running),
        failed: count(CellState::Failed),
        skipped: count(CellState::Skipped),
    })
}

/// The state of a campaign in a word.
const fn state(row: &CampaignRow) -> &'static str {
    match (row.state, &row.ended) {
        (CampaignState::Aborted, Some(_)) => "aborted",
        (CampaignState::Aborted, None) => "aborting",
        (_, Some(_)) => "ended",
        (CampaignState::Running, None) => "running",
        (CampaignState::Paused, None) => "paused",
    }
}

/// Returns the progress of a campaign.
pub(super) fn status(
    row: &CampaignRow,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<CampaignStatus, Failure> {
    let now = Timestamp::now();
    let cells = store.cells(&row.name)?;
    let attempts = store.attempts(&row.name)?;
    let combinations = store.combinations(&row.name)?;
    let subjects: Vec<CellSubject> = combinations.iter().map(subject).collect::<Result<_, _>>()?;
    let is_served = workspace.is_served();
    let mut devices = store.devices()?;
    for device in &mut devices {
        device.online &= is_served;
    }
    let in_campaign = |device: &&DeviceRow| combinations.iter().any(|row| row.devices.contains(&device.id));
    let device_rows: Vec<&DeviceRow> = devices.iter().filter(in_campaign).collect();
    let present = device_rows.iter().filter(|device| device.online).count();
    let is_paused = row.state != CampaignState::Running;
    let mut attention = Vec::new();
    if !is_served && row.ended.is_none() {
        attention.push(format!(
            "no coordinator serves this workspace: {}",
            context.command("serve")
        ));
    }
    let of_cell = |number: u64| cells.iter().find(|cell| cell.number == number);
    let mut documents = Vec::new();
    for device in &device_rows {
        let mut document = campaign_device(device, &attempts, &of_cell, &subjects);
        let run = document.run.map_or(Ok(None), |run| store.run(run))?;
        let is_preparing = |run: &RunRow| run.state.phase == RunPhase::Preparing;
        document.waits_for = run.filter(is_preparing).and_then(|run| run.state.reason);
        documents.push(document);
    }
    let mut causes: BTreeMap<EndCause, u64> = BTreeMap::new();
    let mut failed = Vec::new();
    for cell in cells.iter().filter(|cell| cell.state == CellState::Failed) {
        let Some(cause) = cell.cause else { continue };
        *causes.entry(cause).or_default() += 1;
        failed.push(FailedCell {
            cell: cell.number,
            subject: subject_of(cell, &subjects),
            repetition: cell.repetition,
            cause,
            reason: cell.reason.clone().unwrap_or_default(),
        });
    }
    let left = time_left(&cells, &attempts, present, now);
    let skipped = cells.iter().find(|cell| cell.state == CellState::Skipped);
    Ok(CampaignStatus {
        summary: summary(row, store)?,
        attempts: attempts.len(),
        causes,
        skipped_because: skipped.and_then(|cell| cell.reason.clone()),
        time_left: left.filter(|_| row.ended.is_none() && !is_paused && is_served),
        devices: documents,
        failed_cells: failed,
        attention,
    })
}

fn campaign_device<'a>(
    device: &DeviceRow,
    attempts: &[AttemptRow],
    of_cell: &dyn Fn(u64) -> Option<&'a CellRow>,
    subjects: &[CellSubject],
) -> CampaignDevice {
    let own: Vec<&AttemptRow> = attempts.iter().filter(|row| row.device == device.id).collect();
    let open = own.iter().find(|attempt| attempt.ended.is_none());
    let cell = open.and_then(|attempt| of_cell(attempt.cell));
    let ended = || own.iter().filter(|attempt| attempt.ended.is_some());
    CampaignDevice {
        device: device.id.to_string(),
        name: device.name.clone(),
        state: device.activity().as_str(),
        cell: cell.map(|cell| cell.number),
        subject: cell.map(|cell| subject_of(cell, subjects)),
        run: open.and_then(|attempt| attempt.run),
        since: open.map(|attempt| attempt.requested.clone()),
        waits_for: None,
        good: ended().filter(|attempt| attempt.cause.is_none()).count(),
        failed: ended().filter(|attempt| attempt.cause.is_some()).count(),
    }
}

/// Returns what a combination runs.
pub(super) fn subject(combination: &Combination) -> Result<CellSubject, Failure> {
    let words: Words = serde_json::from_str(&combination.words)?;
    Ok(CellSubject {
        combination: combination.number,
        benchmark: words.benchmark,
        scenario: words.scenario.first().cloned().unwrap_or_default(),
        mode: words.mode.first().cloned().unwrap_or_default(),
        engine: words.engine.unwrap_or_else(|| "tract".to_owned()),
        state: words.state.map(|state| match state {
            StateWords::Preset(preset) => preset,
            StateWords::Own(_) => "own".to_owned(),
        }),
        variant: combination.variant.clone(),
    })
}

/// Returns what a cell runs.
pub(super) fn subject_of(cell: &CellRow, subjects: &[CellSubject]) -> CellSubject {
    let index = usize::try_from(cell.combination).unwrap_or(usize::MAX);
    subjects.get(index).cloned().unwrap_or_default()
}

/// Returns the name of a device, or its id.
pub(super) fn name_of(id: &DeviceId, names: &BTreeMap<DeviceId, String>) -> String {
    names.get(id).cloned().unwrap_or_else(|| id.to_string())
}
