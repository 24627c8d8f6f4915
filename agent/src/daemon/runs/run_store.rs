//! The runs on this device's disk: recovers, creates, finds and removes them, and keeps the refused ones in memory. It does
//! not decide what happens to a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
};

use regatta_types::{
    RunId,
    documents::{RunPhase, RunSpec, end_reason},
};
use regatta_wire::message::{HeldRun, RunHolding, StateReport};

use super::{
    events::RunEvent,
    job::Job,
    recovery::{Recovered, recover_run},
    refused_runs::RefusedRuns,
    run::Run,
    run_dir::RunDir,
    run_failure::RunFailure,
    spool::{NoSpace, SpoolLimits},
    storage::{Storage, runs_dir},
    window_policy::WindowPolicy,
};
use crate::config::AgentConfig;

/// The runs on this device.
#[derive(Debug)]
pub(super) struct RunStore {
    dir: PathBuf,
    storage: Storage,
    limits: SpoolLimits,
    runs: BTreeMap<RunId, Run>,
    /// Runs whose state could not be read. They are retried.
    unreadable: BTreeMap<RunId, RunDir>,
    refused: RefusedRuns,
    next_arrival: u64,
}

impl RunStore {
    /// Recovers the runs on disk.
    ///
    /// # Errors
    /// When the directory of the runs cannot be read. A run whose documents do not parse is logged and skipped. A run
    /// that cannot be read is retried later.
    pub(super) fn recover(config: &AgentConfig) -> io::Result<Self> {
        let mut store = Self {
            dir: runs_dir(config),
            storage: Storage::new(config),
            limits: SpoolLimits {
                required: config.min_free_bytes,
                largest: config.spool_max_bytes,
            },
            runs: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            refused: RefusedRuns::default(),
            next_arrival: 0,
        };
        for (id, dir) in RunDir::all(&store.dir)? {
            store.recover_run(id, dir);
        }
        Ok(store)
    }

    /// Returns the recovered run, if it could be read.
    fn recover_run(&mut self, id: RunId, dir: RunDir) -> Option<&Run> {
        match recover_run(id, dir, &self.storage) {
            Recovered::Run(run) => {
                self.next_arrival = self.next_arrival.max(run.job().arrival.saturating_add(1));
                Some(self.runs.entry(id).insert_entry(*run).into_mut())
            }
            Recovered::Unreadable(dir) => {
                self.unreadable.insert(id, dir);
                None
            }
            Recovered::LeftAlone => None,
        }
    }

    /// Retries the runs that could not be read.
    pub(super) fn retry_unreadable(&mut self) -> Vec<RunEvent> {
        let mut events = Vec::new();
        for (id, dir) in std::mem::take(&mut self.unreadable) {
            if let Some(run) = self.recover_run(id, dir) {
                if run.needs_sealing() {
                    events.push(RunEvent::SealingDue(id));
                }
                events.push(RunEvent::StateDue(id));
            }
        }
        events
    }

    /// Returns whether the state of this run could not be read.
    pub(super) fn is_unreadable(&self, id: RunId) -> bool {
        self.unreadable.contains_key(&id)
    }

    /// Returns the readable runs.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Run> {
        self.runs.values()
    }

    /// Returns the readable runs, to deliver them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Run> {
        self.runs.values_mut()
    }

    /// Returns a readable run.
    pub(super) fn get(&self, id: RunId) -> Option<&Run> {
        self.runs.get(&id)
    }

    /// Returns a readable run, to change it.
    pub(super) fn get_mut(&mut self, id: RunId) -> Option<&mut Run> {
        self.runs.get_mut(&id)
    }

    /// Returns the ids of all runs, including unreadable and refused ones.
    pub(super) fn known_ids(&self) -> Vec<RunId> {
        let on_disk = self.runs.keys().chain(self.unreadable.keys()).copied();
        on_disk.chain(self.refused.ids()).collect()
    }

    /// Returns the runs of which [`Self::report`] returns a state.
    pub(super) fn ids_with_state(&self) -> impl Iterator<Item = RunId> {
        self.runs.keys().copied().chain(self.refused.ids())
    }

    pub(super) fn inventory(&self) -> Vec<HeldRun> {
        let holding = |id: &RunId| match self.runs.get(id) {
            Some(run) if run.job().released => RunHolding::Released,
            Some(_) => RunHolding::Kept,
            None if self.unreadable.contains_key(id) => RunHolding::Kept,
            None => RunHolding::Refused,
        };
        let known = self.known_ids().into_iter();
        known
            .map(|run| HeldRun {
                run,
                holding: holding(&run),
            })
            .collect()
    }

    /// Returns the state report of a readable or refused run.
    pub(super) fn report(&self, id: RunId) -> Option<StateReport> {
        match self.runs.get(&id) {
            Some(run) => Some(run.report()),
            None => self.refused.report(id),
        }
    }

    /// Returns whether the run is on disk or refused.
    pub(super) fn knows(&self, id: RunId) -> bool {
        self.runs.contains_key(&id) || self.unreadable.contains_key(&id) || self.refused.contains(id)
    }

    /// Creates a run that has arrived.
    ///
    /// # Errors
    /// When it cannot be written to disk.
    pub(super) fn create(&mut self, id: RunId, spec: &RunSpec, spec_json: &[u8]) -> Result<(), RunFailure> {
        let job = Job::queued(self.next_arrival);
        let dir = RunDir::create(&self.dir, id, spec_json, &job)
            .map_err(|e| format!("{}: {:#}", end_reason::NO_SPACE, anyhow::Error::from(e)))?;
        self.next_arrival = self.next_arrival.saturating_add(1);
        let run = Run::open(id, dir, job, WindowPolicy::from(spec), &self.storage);
        self.runs.insert(id, run);
        Ok(())
    }

    /// Refuses a run with the phase and reason of its state.
    pub(super) fn refuse(&mut self, id: RunId, phase: RunPhase, reason: String) {
        self.refused.add(id, phase, reason);
    }

    /// Removes a refused run.
    pub(super) fn forget_refused(&mut self, id: RunId) {
        self.refused.remove(id);
    }

    /// Frees reserved disk space if the disk is full.
    pub(super) fn release_reserve_if_full(&self) {
        self.storage.reserve.release_if_full();
    }

    /// Removes a run from disk and memory. Returns `false` if the directory cannot be removed.
    pub(super) fn remove(&mut self, id: RunId) -> bool {
        if let Some(run) = self.runs.get(&id)
            && let Err(e) = run.dir().remove()
        {
            tracing::error!("run {id}: not removed: {:#}", anyhow::Error::from(e));
            return false;
        }
        self.runs.remove(&id);
        true
    }

    /// Removes released runs, the oldest first, until there is space for another run.
    ///
    /// # Errors
    /// When there is not enough space.
    pub(super) fn make_space(&mut self, events: &mut Vec<RunEvent>) -> Result<(), RunFailure> {
        loop {
            let Err(error) = self.limits.check(&self.dir) else {
                return Ok(());
            };
            let removable = self.iter().filter(|run| run.may_be_removed());
            let oldest = removable.min_by_key(|run| run.job().arrival).map(Run::id);
            // If the free space is unknown, no run is removed.
            let (NoSpace::Disk { .. } | NoSpace::Spool { .. }, Some(oldest)) = (&error, oldest) else {
                let error = anyhow::Error::from(error);
                return Err(format!("{}: {error:#}", end_reason::NO_SPACE).into());
            };
            tracing::warn!("run {oldest}: delivered; removed to free space for another run");
            if !self.remove(oldest) {
                return Err(format!("{}: a released one cannot be removed", end_reason::NO_SPACE).into());
            }
            events.push(RunEvent::Removed(oldest));
        }
    }

    /// Returns the SHA-256 of all assets that unfinished runs on this device need.
    pub(super) fn pinned_assets(&self) -> BTreeSet<String> {
        let unfinished = self.iter().filter(|run| !run.phase().is_final());
        // A run with an unreadable spec fails when it is started.
        unfinished
            .filter_map(|run| run.dir().assets().ok().flatten())
            .flat_map(|assets| assets.needed)
            .map(|asset| asset.sha256)
            .collect()
    }
}
