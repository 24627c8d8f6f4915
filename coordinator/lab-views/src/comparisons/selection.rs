//! The grammar of selections: `KIND:VALUE` conditions joined by `+`, or runs by their ids.

use std::collections::{BTreeMap, BTreeSet};

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
        let ids: BTreeSet<RunId> = lookup::runs(runs.store, &names)?
            .iter()
            .map(|row| row.id)
            .collect();
        return Ok(Box::new(move |row| ids.contains(&row.id)));
    };
    match kind {
        "device" => Ok(on_devices(lookup::any_devices(runs.store, &[value.to_owned()])?)),
        "label" => {
            let known = runs.store.labels().all()?;
            Ok(on_devices(lookup::devices_of(value, &known)?.clone()))
        }
        "campaign" => of_campaign(value, runs),
        "set" => {
            let Some((key, setting)) = value.split_once('=') else {
                return Err(LabError::misuse(format!("`{word}` has no value")).hint(format!(
                    "write `set:{value}=VALUE`; `set:{value}=` are the runs without the setting"
                )));
            };
            let (key, setting) = (key.to_owned(), setting.to_owned());
            Ok(Box::new(move |row| {
                let found = row.draft.spec.engine.settings.value(&key);
                found.map_or_else(String::new, |value| value.to_string()) == setting
            }))
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

fn on_devices<'a>(devices: BTreeSet<DeviceId>) -> Condition<'a> {
    Box::new(move |row| devices.contains(&row.device))
}

/// Selects the attempts of a campaign, or of one variant of its settings.
fn of_campaign<'a>(value: &str, runs: &'a Runs<'_>) -> Result<Condition<'a>, LabError> {
    let store = runs.store;
    let (name, variant) = match value.split_once('/') {
        Some((name, variant)) => (name, Some(variant)),
        None => (value, None),
    };
    if store.campaigns().get(name)?.is_none() {
        let known: Vec<String> = store.campaigns().all()?.into_iter().map(|row| row.name).collect();
        return Err(LabError::misuse(format!(
            "unknown campaign `{name}`; known are {}",
            known.join(", ")
        ))
        .hint("`regatta campaign list` shows them"));
    }
    let variants: BTreeMap<u64, Option<String>> = store
        .cells()
        .combinations(name)?
        .into_iter()
        .map(|combination| (combination.number, combination.variant))
        .collect();
    if let Some(variant) = variant
        && !variants.values().flatten().any(|known| known == variant)
    {
        let known: BTreeSet<&str> = variants.values().flatten().map(String::as_str).collect();
        let known: Vec<&str> = known.into_iter().collect();
        return Err(LabError::misuse(match known.as_slice() {
            [] => format!("campaign {name} has no variants of settings"),
            known => format!(
                "campaign {name} has no variant `{variant}`; it has {}",
                known.join(", ")
            ),
        }));
    }
    let of_variant = |cell: &u64| {
        let found = variants.get(cell).and_then(Option::as_deref);
        variant.is_none() || found == variant
    };
    let cells: BTreeSet<u64> = store
        .cells()
        .of_campaign(name)?
        .iter()
        .filter(|cell| of_variant(&cell.combination))
        .map(|cell| cell.number)
        .collect();
    let attempts = store.attempts().of_campaign(name)?.into_iter();
    let ids: BTreeSet<RunId> = attempts
        .filter(|attempt| cells.contains(&attempt.cell))
        .filter_map(|attempt| attempt.run)
        .collect();
    Ok(Box::new(move |row| ids.contains(&row.id)))
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
