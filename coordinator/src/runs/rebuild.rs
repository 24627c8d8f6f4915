//! Fills the store from the runs' directories when it was lost. A recorded run gets its record's accuracy and audit back;
//! whether it is complete and signed is found out anew from its files. A run without a record is asked for from its device.
//! Changes no run's directory, and restores no membership.

use std::{collections::BTreeSet, fs, io, path::Path};

use anyhow::Context as _;
use regatta_fsutil::{
    hash::sha256_hex,
    regular_file::{self, LARGEST_DOCUMENT},
};
use regatta_submission::proof::{PublicKey, key_beside};
use regatta_types::{
    DeviceId, RunId,
    documents::{Document as _, Evidence, Record, RunPhase, RunSpec, RunState, document_name},
};

use super::{
    evidence,
    logged::{Logged, outcome},
};
use crate::{
    store::{RecordedDevice, RunDraft, RunRow, Store, StreamRow},
    workspace::{RunDir, Workspace},
};

/// The store knows no run, and there are recorded ones.
#[derive(Debug, thiserror::Error)]
#[error("the store {database} is new or empty, and {runs} holds {count} recorded runs that it does not know")]
pub(crate) struct RunsNotInStore {
    database: String,
    runs: String,
    count: usize,
}

/// Expects that a store without runs belongs to a workspace without recorded runs.
///
/// # Errors
/// [`RunsNotInStore`], or when the store or the directory cannot be read.
pub(crate) fn expect_runs_in_store(workspace: &Workspace, store: &Store) -> anyhow::Result<()> {
    if store.has_runs()? {
        return Ok(());
    }
    let count = recorded(workspace)?.len();
    if count == 0 {
        return Ok(());
    }
    Err(RunsNotInStore {
        database: workspace.database().display().to_string(),
        runs: workspace.runs().display().to_string(),
        count,
    }
    .into())
}

/// How many recorded runs the store does not know, as one restored from an older copy.
///
/// # Errors
/// When the store or the directory cannot be read.
pub(crate) fn count_runs_not_in_store(workspace: &Workspace, store: &Store) -> anyhow::Result<usize> {
    // In this order: a run is in the store before it is recorded.
    let recorded = recorded(workspace)?;
    let known: BTreeSet<RunId> = store.runs()?.into_iter().map(|row| row.id).collect();
    Ok(recorded.iter().filter(|run| !known.contains(run)).count())
}

/// What was taken into the store.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct Rebuilt {
    /// Runs with a record.
    pub(crate) recorded: Vec<RunId>,
    /// Runs without one: their devices are asked how they are.
    pub(crate) unfinished: Vec<RunId>,
    /// What stands in the way, or does not fit, by run.
    pub(crate) problems: Vec<Problem>,
}

/// One thing that is wrong with a run's directory.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Problem {
    /// The run.
    pub(crate) run: RunId,
    /// What is wrong.
    pub(crate) problem: String,
}

/// Takes every run into the store that it does not know.
///
/// # Errors
/// When the store fails or the runs cannot be listed. A run that cannot be taken is a problem in the answer.
pub(crate) fn rebuild(workspace: &Workspace, store: &Store) -> anyhow::Result<Rebuilt> {
    let mut rebuilt = Rebuilt::default();
    for run in directories(workspace)? {
        if store.run(run)?.is_some() {
            continue;
        }
        let mut find = |problem: String| rebuilt.problems.push(Problem { run, problem });
        match take(run, &workspace.run(run), store, &mut find) {
            Ok(TakenRun::Recorded) => rebuilt.recorded.push(run),
            Ok(TakenRun::Unfinished) => rebuilt.unfinished.push(run),
            Ok(TakenRun::NeverSent) => {}
            Err(error) => find(format!("not taken into the store: {error:#}")),
        }
    }
    Ok(rebuilt)
}

enum TakenRun {
    Recorded,
    Unfinished,
    NeverSent,
}

/// Runs that have a directory, oldest first.
fn directories(workspace: &Workspace) -> io::Result<Vec<RunId>> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(workspace.runs())? {
        let name = entry?.file_name();
        runs.extend(name.to_str().and_then(|name| name.parse::<RunId>().ok()));
    }
    runs.sort_unstable();
    Ok(runs)
}

/// Runs that have a record.
fn recorded(workspace: &Workspace) -> io::Result<Vec<RunId>> {
    let mut runs = directories(workspace)?;
    runs.retain(|run| workspace.run(*run).record().exists());
    Ok(runs)
}

fn take(run: RunId, dir: &RunDir, store: &Store, find: &mut dyn FnMut(String)) -> anyhow::Result<TakenRun> {
    let Some(spec_json) = optional(&dir.spec())? else {
        return Ok(TakenRun::NeverSent);
    };
    let spec = RunSpec::from_json(&spec_json).context(document_name::SPEC)?;
    anyhow::ensure!(spec.run == run, "spec.json is of run {}", spec.run);
    let spec_sha256 = sha256_hex(&spec_json);
    let draft = RunDraft {
        spec,
        guesses: Default::default(),
        user_settings: Default::default(),
    };
    let Some(record) = optional(&dir.record())? else {
        // Its device knows how it is. A state that it tells has a higher revision.
        let state = RunState {
            phase: RunPhase::Queued,
            reason: None,
            revision: 0,
        };
        store.add_sent_run(&draft, &spec_sha256, &state, &[])?;
        return Ok(TakenRun::Unfinished);
    };
    let record = Record::from_json(&record).context(document_name::RECORD)?;
    anyhow::ensure!(record.run == run, "record.json is of run {}", record.run);
    anyhow::ensure!(
        record.device == draft.spec.device,
        "record.json and spec.json name different devices"
    );
    let evidence = optional(&dir.files().join(document_name::EVIDENCE))?;
    let evidence = evidence.and_then(|bytes| Evidence::from_json(&bytes).ok());
    if let Some(public_key) = key_of(&record.device, dir.path(), find)?
        && let Some(evidence) = evidence
    {
        store.add_recorded_device(&RecordedDevice {
            id: &record.device,
            name: &record.device_name,
            public_key,
            agent: &evidence.agent,
            facts: &evidence.after,
            seen: &record.written,
        })?;
    }
    let streams = streams(&record);
    store.add_sent_run(&draft, &spec_sha256, &record.state, &streams)?;
    let row = store.run(run)?.context("the store forgot the run")?;
    record_again(&row, dir, &streams, record, store, find)?;
    Ok(TakenRun::Recorded)
}

/// The device's key beside a run, if it is the key of that device.
fn key_of(device: &DeviceId, dir: &Path, find: &mut dyn FnMut(String)) -> anyhow::Result<Option<PublicKey>> {
    let key = key_beside(dir)?;
    let own = key.filter(|key| DeviceId::of_public_key(key) == *device);
    if own.is_none() {
        find(format!("device.pub is not the key of device {device}"));
    }
    Ok(own)
}

fn streams(record: &Record) -> Vec<StreamRow> {
    let proofs = record.delivery.streams.iter();
    proofs
        .map(|proof| StreamRow {
            name: proof.name.clone(),
            listed: true,
            committed: proof.bytes,
            stated_length: proof.stated_sha256.as_ref().map(|_| proof.bytes),
            stated_sha256: proof.stated_sha256.clone(),
            whole: proof.sha256.is_some(),
        })
        .collect()
}

/// Keeps a run's record in the store: what the files prove now, and what only the record can tell.
fn record_again(
    row: &RunRow,
    dir: &RunDir,
    streams: &[StreamRow],
    mut record: Record,
    store: &Store,
    find: &mut dyn FnMut(String),
) -> anyhow::Result<()> {
    let device = store.device(&row.device)?;
    let mut proven = evidence::prove(dir, row, device.as_ref(), streams).context("the delivered files")?;
    record.state = proven.final_state(row);
    record.delivery.complete = proven.delivery.complete;
    record.evidence_signature_valid = proven.signature_valid;
    for contradiction in &proven.contradictions {
        if !record.contradictions.contains(contradiction) {
            find(contradiction.clone());
            record.contradictions.push(contradiction.clone());
        }
    }
    let spec = &row.draft.spec;
    let logged = Logged::read(spec, &record.state, &dir.files(), &proven);
    let outcome = outcome(spec, &record, &logged, &proven, false);
    Ok(store.record_unchanged_run(row, &record, &outcome)?)
}

fn optional(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match regular_file::read(path, LARGEST_DOCUMENT) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
