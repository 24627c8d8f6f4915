//! The grammar of selections: `KIND:VALUE` conditions joined by `+`, or runs by their ids.

use std::collections::BTreeSet;

use regatta_types::{
    DeviceId, RunId,
    documents::{Document as _, EngineKind, Evidence},
};

use crate::lookup;
use regatta_lab_store::{
    RunRow, Store,
    lab_error::LabError,
    workspace::{RunDir, Workspace},
};

/// The largest evidence that is read.
const MAX_EVIDENCE: u64 = 16 << 20;

/// All runs of the store.
pub struct Runs<'a> {
    /// The runs, newest first.
    pub rows: Vec<RunRow>,
    /// The workspace that has their files.
    pub workspace: &'a Workspace,
    pub store: &'a Store,
}

type Condition<'a> = Box<dyn Fn(&RunRow) -> bool + 'a>;

/// Returns the runs that a selection names, the oldest first.
pub(super) fn find<'a>(words: &str, runs: &'a Runs<'_>) -> Result<Vec<&'a RunRow>, LabError> {
    let conditions = words
        .split('+')
        .map(|word| condition(word, runs))
        .collect::<Result<Vec<_>, _>>()?;
    let is_selected = |row: &&RunRow| conditions.iter().all(|holds| holds(row));
    let found: Vec<&RunRow> = runs.rows.iter().rev().filter(is_selected).collect();
    if found.is_empty() {
        return Err(LabError::misuse(format!("no run is selected by `{words}`"))
            .hint("`regatta runs list` shows the runs"));
    }
    Ok(found)
}

fn condition<'a>(word: &str, runs: &'a Runs<'_>) -> Result<Condition<'a>, LabError> {
    let Some((kind, value)) = word.split_once(':') else {
        let names: Vec<String> = word.split(',').map(str::to_owned).collect();
        let found = lookup::runs(runs.store, &names);
        let found = found.map_err(|error| match kind_of_name(word, runs.store) {
            Some(kind) => error.hint(format!("`{kind}:{word}` selects the runs of {word}")),
            None => error,
        })?;
        let ids: BTreeSet<RunId> = found.iter().map(|row| row.id).collect();
        return Ok(Box::new(move |row| ids.contains(&row.id)));
    };
    match kind {
        "device" => Ok(on_devices(lookup::any_devices(runs.store, &[value.to_owned()])?)),
        "label" => {
            let known = runs.store.labels().all()?;
            Ok(on_devices(lookup::devices_of(value, &known)?.clone()))
        }
        "campaign" => {
            let campaign = lookup::campaign_runs(runs.store, value)?;
            Ok(Box::new(move |row| campaign.contains(row)))
        }
        "set" => {
            let setting: lookup::EngineSetting = value.parse().map_err(|_| {
                LabError::misuse(format!("`{word}` has no value")).hint(format!(
                    "write `set:{value}=VALUE`; `set:{value}=` are the runs without the setting"
                ))
            })?;
            Ok(Box::new(move |row| setting.is_of(row)))
        }
        "engine" => {
            let engine: EngineKind = value.parse().map_err(LabError::usage)?;
            Ok(Box::new(move |row| row.draft.spec.engine.kind == engine))
        }
        "agent" => {
            let version = value.to_owned();
            Ok(Box::new(move |row| {
                agent(&runs.workspace.run(row.id)).is_some_and(|found| found == version)
            }))
        }
        _ => Err(
            LabError::misuse(format!("`{kind}` is not a kind of selection")).hint(
                "known are device, label, campaign, set, engine and agent; runs are named by their ids alone",
            ),
        ),
    }
}

/// Returns the kind of selection for which a word without a kind is a name.
fn kind_of_name(word: &str, store: &Store) -> Option<&'static str> {
    if store.devices().names().ok()?.values().any(|name| name == word) {
        return Some("device");
    }
    let campaign = word.split('/').next().unwrap_or_default();
    if store.campaigns().get(campaign).ok()?.is_some() {
        return Some("campaign");
    }
    let labels = store.labels().all().ok()?;
    labels
        .keys()
        .any(|label| label.to_string() == word)
        .then_some("label")
}

fn on_devices<'a>(devices: BTreeSet<DeviceId>) -> Condition<'a> {
    Box::new(move |row| devices.contains(&row.device))
}

/// Returns the evidence of a recorded run. `None` without one that can be read.
pub(super) fn evidence(dir: &RunDir) -> Option<Evidence> {
    let path = dir.files().join("evidence.json");
    let bytes = regatta_fsutil::regular_file::read(&path, MAX_EVIDENCE).ok()?;
    Evidence::from_json(&bytes).ok()
}

/// Returns the version of the agent that executed a run, without the program's name.
fn agent(dir: &RunDir) -> Option<String> {
    let agent = evidence(dir)?.agent;
    Some(agent.strip_prefix("regatta-agent ").unwrap_or(&agent).to_owned())
}
