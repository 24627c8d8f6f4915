//! Restores the store from the runs' directories after it was lost.
//!
//! A recorded run gets its judgement, accuracy and audit from its record. Whether it is complete and signed is checked again from its files. A run
//! without a record is requested from its device. This module changes no run's directory and restores no membership.

use std::{collections::BTreeSet, fs, io, path::Path};

use anyhow::Context as _;
use regatta_fsutil::{
    hash::sha256_hex,
    regular_file::{self, MAX_DOCUMENT},
};
use regatta_submission_stage::proof::{PublicKey, key_beside};
use regatta_types::{
    DeviceId, RunId,
    documents::{Document as _, Evidence, Record, RunPhase, RunSpec, RunState, document_name},
};

use super::{evidence, finish::is_set_aside, logged::outcome, staged};
use regatta_lab_store::{
    RecordedDevice, RunDraft, RunOutcome, RunRow, Store, StoreError, StreamRow, workspace::Workspace,
};

/// The store has no run, but the workspace has recorded runs.
#[derive(Debug, thiserror::Error)]
#[error(
    "the database {database} is new or empty, but {runs} contains {count} recorded runs that are not in it"
)]
pub struct RunsNotInStore {
    database: String,
    runs: String,
    count: usize,
}

/// Checks that an empty store belongs to a workspace without recorded runs.
///
/// # Errors
/// Returns [`RunsNotInStore`], or an error when the store or the directory cannot be read.
pub fn expect_runs_in_store(workspace: &Workspace, store: &Store) -> anyhow::Result<()> {
    if store.runs().has_any()? {
        return Ok(());
    }
    let count = recorded(workspace)?.len();
    if count == 0 {
        return Ok(());
    }
    Err(RunsNotInStore {
        database: workspace.database().to_string(),
        runs: workspace.runs().display().to_string(),
        count,
    }
    .into())
}

/// Returns the number of recorded runs that the store does not have, as after restoring an older copy.
///
/// # Errors
/// Returns an error when the store or the directory cannot be read.
pub fn count_runs_not_in_store(workspace: &Workspace, store: &Store) -> anyhow::Result<usize> {
    // Read the directories first: a run is in the store before it is recorded.
    let recorded = recorded(workspace)?;
    let known: BTreeSet<RunId> = store.runs().all()?.into_iter().map(|row| row.id).collect();
    Ok(recorded.iter().filter(|run| !known.contains(run)).count())
}

/// The result of a rebuild.
#[derive(Debug, Default, serde::Serialize)]
pub struct Rebuilt {
    /// Restored runs with a record.
    pub recorded: Vec<RunId>,
    /// Restored runs without a record. Their devices are queried.
    pub unfinished: Vec<RunId>,
    /// Problems, by run.
    pub problems: Vec<Problem>,
}

/// A problem with a run's directory.
#[derive(Debug, serde::Serialize)]
pub struct Problem {
    pub run: RunId,
    pub problem: String,
}

/// Adds every run to the store that the store does not have.
///
/// # Errors
/// Returns an error when the store fails or the runs cannot be listed. A run that cannot be restored is a `Problem` in the result.
pub fn rebuild(workspace: &Workspace, store: &Store) -> anyhow::Result<Rebuilt> {
    let mut rebuilt = Rebuilt::default();
    for run in directories(workspace)? {
        if store.runs().get(run)?.is_some() {
            continue;
        }
        let mut find = |problem: String| rebuilt.problems.push(Problem { run, problem });
        match take(run, workspace, store, &mut find) {
            Ok(TakenRun::Recorded) => {
                if let Err(error) = staged::restore(run, &workspace.run(run), store) {
                    find(format!(
                        "cannot determine which submission trees contain it: {error:#}"
                    ));
                }
                rebuilt.recorded.push(run);
            }
            Ok(TakenRun::Unfinished) => rebuilt.unfinished.push(run),
            Ok(TakenRun::NeverSent) => {}
            Err(error) => find(format!("not taken into the store: {error:#}")),
        }
    }
    Ok(rebuilt)
}

/// Adds a recorded run, whose directory is in the workspace, to the store. Returns problems with it.
///
/// # Errors
/// Returns an error when the store has the run, or the run cannot be added; the store is then unchanged.
pub fn add_recorded(run: RunId, workspace: &Workspace, store: &Store) -> anyhow::Result<Vec<String>> {
    anyhow::ensure!(
        store.runs().get(run)?.is_none(),
        "the workspace has run {run} already"
    );
    let mut problems = Vec::new();
    let mut cause = None;
    // In one transaction: a coordinator that serves would record a run whose record is not in the store yet.
    let added = store.all_or_nothing(|store| {
        let taken = match take(run, workspace, store, &mut |problem| problems.push(problem)) {
            Ok(TakenRun::Recorded) => return Ok(()),
            Ok(_) => anyhow::anyhow!("it has no record"),
            Err(error) => error,
        };
        cause = Some(taken);
        Err(StoreError::RunChanged(run))
    });
    match (added, cause) {
        (_, Some(cause)) => Err(cause),
        (added, None) => Ok(added.map(|()| problems)?),
    }
}

enum TakenRun {
    Recorded,
    Unfinished,
    NeverSent,
}

/// Returns the runs that have a directory, oldest first.
fn directories(workspace: &Workspace) -> io::Result<Vec<RunId>> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(workspace.runs())? {
        let name = entry?.file_name();
        runs.extend(name.to_str().and_then(|name| name.parse::<RunId>().ok()));
    }
    runs.sort_unstable();
    Ok(runs)
}

fn recorded(workspace: &Workspace) -> io::Result<Vec<RunId>> {
    let mut runs = directories(workspace)?;
    runs.retain(|run| workspace.run(*run).record().exists());
    Ok(runs)
}

fn take(
    run: RunId,
    workspace: &Workspace,
    store: &Store,
    find: &mut dyn FnMut(String),
) -> anyhow::Result<TakenRun> {
    let dir = workspace.run(run);
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
        is_conf_fixed: false,
        forced: false,
        limit_s: None,
    };
    let Some(record) = optional(&dir.record())? else {
        // The device knows the run's state, and reports it with a higher revision.
        let state = RunState {
            phase: RunPhase::Queued,
            reason: None,
            revision: 0,
        };
        store.runs().add_sent(&draft, &spec_sha256, &state, &[])?;
        return Ok(TakenRun::Unfinished);
    };
    let record = Record::from_json(&record).context(document_name::RECORD)?;
    anyhow::ensure!(record.run == run, "record.json is of run {}", record.run);
    anyhow::ensure!(
        record.device == draft.spec.device,
        "record.json and spec.json name different devices"
    );
    let set_aside = record.not_judged.iter().find(|why| is_set_aside(why)).cloned();
    let evidence = match set_aside {
        // Reading its files ended a coordinator.
        Some(_) => None,
        None => optional(&dir.files().join(document_name::EVIDENCE))?,
    };
    let evidence = evidence.and_then(|bytes| Evidence::from_json(&bytes).ok());
    if let Some(public_key) = key_of(&record.device, dir.path(), find)?
        && let Some(evidence) = evidence
    {
        store.devices().add_recorded(&RecordedDevice {
            id: &record.device,
            name: &record.device_name,
            public_key,
            agent: &evidence.agent,
            facts: &evidence.after,
            seen: &record.written,
        })?;
    }
    let streams = streams(&record);
    store
        .runs()
        .add_sent(&draft, &spec_sha256, &record.state, &streams)?;
    let row = || store.runs().get(run)?.context("the store forgot the run");
    if let Some(reason) = set_aside {
        store.runs().give_up(run, &reason)?;
        let row = row()?;
        store
            .runs()
            .record_unchanged(&row, &record, &RunOutcome::set_aside(&record))?;
        return Ok(TakenRun::Recorded);
    }
    record_again(&row()?, workspace, &streams, record, store, find)?;
    Ok(TakenRun::Recorded)
}

/// Returns the public key in the run's directory, if it belongs to that device.
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
            is_complete: proof.sha256.is_some(),
        })
        .collect()
}

/// Restores a run's record in the store, with facts proven from the files and facts that only the record has.
fn record_again(
    row: &RunRow,
    workspace: &Workspace,
    streams: &[StreamRow],
    mut record: Record,
    store: &Store,
    find: &mut dyn FnMut(String),
) -> anyhow::Result<()> {
    let device = store.devices().get(&row.device)?;
    let mut proven = evidence::prove(&workspace.run(row.id), row, device.as_ref(), streams)
        .context("the delivered files")?;
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
    let outcome = outcome(spec, &record, &proven, false);
    Ok(store.runs().record_unchanged(row, &record, &outcome)?)
}

fn optional(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match regular_file::read(path, MAX_DOCUMENT) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
