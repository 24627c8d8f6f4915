//! A run as JSON, alone and with its files.

use std::collections::BTreeMap;

use regatta_types::{
    RunId,
    documents::{EndCause, RunMarker},
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::wording::run_text;
use regatta_lab_runs::{RunEnd, cause_of_end, markers};
use regatta_lab_store::{RunRow, StreamRow, workspace::RunDir};

/// A run as a JSON document.
#[derive(Serialize)]
pub struct RunDocument<'a> {
    run: RunId,
    device: &'a str,
    device_name: Option<&'a str>,
    benchmark: &'a str,
    scenario: &'static str,
    mode: &'static str,
    test: Option<&'a str>,
    task: &'static str,
    engine: &'static str,
    settings: Map<String, Value>,
    conf: &'a BTreeMap<String, String>,
    loadgen: String,
    round: &'a str,
    requested_state: &'a str,
    campaign: Option<&'a str>,
    cell: Option<u64>,
    variant: Option<&'a str>,
    note: Option<&'a str>,
    created: &'a str,
    started: Option<String>,
    duration_seconds: Option<f64>,
    markers: Vec<RunMarker>,
    phase: &'static str,
    reason: Option<&'a str>,
    cause: Option<EndCause>,
    abort_pending: bool,
    recorded: Option<&'a str>,
    #[serde(flatten)]
    outcome: Option<Value>,
}

/// Returns a run as JSON.
pub fn run_document(row: &RunRow) -> RunDocument<'_> {
    let spec = &row.draft.spec;
    let cell = row.campaign_cell.as_ref();
    RunDocument {
        run: row.id,
        device: row.device.as_str(),
        device_name: row.device_name.as_deref(),
        benchmark: &row.benchmark,
        scenario: row.scenario.as_str(),
        mode: row.mode.as_str(),
        test: row.audit(),
        task: spec.task.as_str(),
        engine: spec.engine.kind.as_str(),
        settings: settings(row),
        conf: &row.draft.user_settings,
        loadgen: spec.loadgen.to_string(),
        round: &spec.round,
        requested_state: run_text::device_state(row),
        campaign: cell.map(|cell| cell.campaign.as_str()),
        cell: cell.map(|cell| cell.cell),
        variant: cell.and_then(|cell| cell.variant.as_deref()),
        note: row.note.as_deref(),
        created: &spec.created,
        started: run_text::start(row).map(|start| start.to_string()),
        duration_seconds: run_text::seconds(row),
        markers: markers(row),
        phase: row.shown_phase().as_str(),
        reason: row.state.reason.as_deref(),
        cause: RunEnd::of(row).and_then(|end| cause_of_end(&end)),
        abort_pending: row.pending_abort.is_some(),
        recorded: row.recorded.as_deref(),
        // Words and numbers are always JSON.
        outcome: row
            .outcome
            .as_ref()
            .and_then(|outcome| serde_json::to_value(outcome).ok()),
    }
}

/// Returns the engine settings by name.
fn settings(row: &RunRow) -> Map<String, Value> {
    let settings = row.draft.spec.engine.settings.iter();
    settings
        .filter_map(|(setting, value)| Some((setting.name.to_owned(), serde_json::to_value(value).ok()?)))
        .collect()
}

/// A run with its files as a JSON document.
#[derive(Serialize)]
pub struct ShownRun<'a> {
    #[serde(flatten)]
    run: RunDocument<'a>,
    streams: Vec<StreamDocument<'a>>,
    directory: String,
}

#[derive(Serialize)]
struct StreamDocument<'a> {
    name: &'a str,
    committed: u64,
    length: Option<u64>,
    sha256: Option<&'a str>,
    complete: bool,
}

/// Returns a run with its files as JSON.
pub fn shown_run<'a>(row: &'a RunRow, streams: &'a [StreamRow], directory: &RunDir) -> ShownRun<'a> {
    let streams = streams.iter().map(|stream| StreamDocument {
        name: stream.name.as_str(),
        committed: stream.committed,
        length: stream.stated_length,
        sha256: stream.stated_sha256.as_deref(),
        complete: stream.is_complete,
    });
    ShownRun {
        run: run_document(row),
        streams: streams.collect(),
        directory: directory.path().display().to_string(),
    }
}
