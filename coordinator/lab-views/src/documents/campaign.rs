//! Campaigns as JSON: in one line, and with their progress. `tables` formats them for people.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regatta_types::{
    DeviceId,
    documents::{EndCause, RunPhase, RunTask},
};

use crate::documents::{CampaignDevice, CampaignStatus, CampaignSummary, CellSubject, FailedCell};
use regatta_campaigns::time_left;
use regatta_lab_store::{
    AttemptRow, CampaignRow, CampaignState, CellRow, CellState, Combination, DeviceRow, RunRow, Store,
};

/// Returns a campaign in one line.
pub fn campaign_summary(row: &CampaignRow, store: &Store) -> anyhow::Result<CampaignSummary> {
    let counts: BTreeMap<CellState, u64> = store.cells().count_by_state(&row.name)?.into_iter().collect();
    let count = |state: CellState| counts.get(&state).copied().unwrap_or(0);
    let open = store.attempts().open()?;
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

/// Returns the state of a campaign in a word.
const fn state(row: &CampaignRow) -> &'static str {
    match (row.state, &row.ended) {
        (CampaignState::Aborted, Some(_)) => "aborted",
        (CampaignState::Aborted, None) => "aborting",
        (_, Some(_)) => "ended",
        (CampaignState::Running, None) => "running",
        (CampaignState::Paused, None) => "paused",
    }
}

/// Returns the progress of a campaign. `serve` is the command that serves the workspace, if no coordinator does.
pub fn campaign_status(
    row: &CampaignRow,
    serve: Option<&str>,
    store: &Store,
) -> anyhow::Result<CampaignStatus> {
    let now = Timestamp::now();
    let cells = store.cells().of_campaign(&row.name)?;
    let attempts = store.attempts().of_campaign(&row.name)?;
    let combinations = store.cells().combinations(&row.name)?;
    let subjects: Vec<CellSubject> = combinations.iter().map(cell_subject).collect();
    let is_served = serve.is_none();
    let mut devices = store.devices().all()?;
    for device in &mut devices {
        device.online &= is_served;
    }
    let in_campaign = |device: &&DeviceRow| combinations.iter().any(|row| row.devices.contains(&device.id));
    let device_rows: Vec<&DeviceRow> = devices.iter().filter(in_campaign).collect();
    let present = device_rows.iter().filter(|device| device.online).count();
    let is_paused = row.state != CampaignState::Running;
    let mut attention = Vec::new();
    if let Some(serve) = serve
        && row.ended.is_none()
    {
        attention.push(format!("no coordinator serves this workspace: {serve}"));
    }
    let of_cell = |number: u64| cells.iter().find(|cell| cell.number == number);
    let mut documents = Vec::new();
    for device in &device_rows {
        let mut document = campaign_device(device, &attempts, &of_cell, &subjects);
        let run = document.run.map_or(Ok(None), |run| store.runs().get(run))?;
        let is_preparing = |run: &RunRow| run.state.phase == RunPhase::Preparing;
        document.waits_for = run.filter(is_preparing).and_then(|run| run.state.reason);
        documents.push(document);
    }
    let device_of = |cell: &CellRow| {
        let last = attempts.iter().rfind(|attempt| attempt.cell == cell.number);
        let id = last.map(|attempt| &attempt.device).or(cell.device.as_ref())?;
        Some(
            devices
                .iter()
                .find(|row| row.id == *id)
                .map_or_else(|| id.to_string(), |row| row.name.clone()),
        )
    };
    let mut causes: BTreeMap<EndCause, u64> = BTreeMap::new();
    let mut failed = Vec::new();
    for cell in cells.iter().filter(|cell| cell.state == CellState::Failed) {
        let Some(cause) = cell.cause else { continue };
        *causes.entry(cause).or_default() += 1;
        failed.push(FailedCell {
            cell: cell.number,
            subject: subject_of_cell(cell, &subjects),
            repetition: cell.repetition,
            device: device_of(cell),
            cause,
            reason: cell.reason.clone().unwrap_or_default(),
        });
    }
    let left = time_left(&cells, &attempts, present, now);
    let skipped = cells.iter().find(|cell| cell.state == CellState::Skipped);
    Ok(CampaignStatus {
        summary: campaign_summary(row, store)?,
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
        state: device.activity(),
        cell: cell.map(|cell| cell.number),
        subject: cell.map(|cell| subject_of_cell(cell, subjects)),
        run: open.and_then(|attempt| attempt.run),
        since: open.map(|attempt| attempt.requested.clone()),
        waits_for: None,
        good: ended().filter(|attempt| attempt.cause.is_none()).count(),
        failed: ended().filter(|attempt| attempt.cause.is_some()).count(),
    }
}

/// Returns the subject of a combination's runs.
pub fn cell_subject(combination: &Combination) -> CellSubject {
    let request = &combination.request;
    CellSubject {
        combination: combination.number,
        benchmark: request.benchmark.clone(),
        scenario: request.scenario.to_string(),
        mode: match request.task {
            _ if combination.meter.is_some() => "power session".to_owned(),
            RunTask::Measurement => request.mode.to_string(),
            task => task.describe().to_owned(),
        },
        engine: request
            .engine
            .kind
            .map_or_else(|| "default engine".to_owned(), |engine| engine.to_string()),
        state: request.state.as_ref().map(|state| state.name().to_owned()),
        variant: combination.variant.clone(),
        audit: combination.audit.clone(),
    }
}

/// Returns the subject of a cell's runs.
pub fn subject_of_cell(cell: &CellRow, subjects: &[CellSubject]) -> CellSubject {
    let index = usize::try_from(cell.combination).unwrap_or(usize::MAX);
    subjects.get(index).cloned().unwrap_or_default()
}

/// Returns the name of a device, or its id.
pub fn device_name(id: &DeviceId, names: &BTreeMap<DeviceId, String>) -> String {
    names.get(id).cloned().unwrap_or_else(|| id.to_string())
}
