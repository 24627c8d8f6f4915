//! Recovery after a restart of the daemon or a power cut. Every run on disk is brought into a state from which the
//! state machine can continue.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::PathBuf,
    sync::Arc,
    time::Instant,
};

use regatta_board::FactsReader;
use regatta_types::{RunId, documents::RunPhase};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::{
    durable::Reserve,
    link::Link,
    pace::Pace,
    process,
    run::{Run, Storage},
    run_dir::{Ending, RunDir, RunDirError},
    service::{Due, Service},
    trust::Trust,
    window::WindowPolicy,
};
use crate::{config::AgentConfig, identity::DeviceIdentity};

impl<L: Link> Service<L> {
    /// Creates the service from the runs in `runs_dir`.
    ///
    /// # Errors
    /// When the directory cannot be read, or the system provides no random numbers. A run whose documents do not parse
    /// is logged and skipped. A run that cannot be read is retried later.
    pub(crate) fn recover(
        config: AgentConfig,
        identity: Arc<DeviceIdentity>,
        trust: Trust,
        facts: FactsReader,
        runs_dir: PathBuf,
        link: L,
    ) -> io::Result<Self> {
        let storage = Storage {
            window_chunks: config.window_chunks,
            reserve: Reserve::new(config.state_dir.join("reserve")),
        };
        let (mut runs, mut unreadable) = (BTreeMap::new(), BTreeMap::new());
        for (id, dir) in RunDir::all(&runs_dir)? {
            match recover_run(id, dir, &storage) {
                Recovered::Run(run) => drop(runs.insert(id, *run)),
                Recovered::Unreadable(dir) => drop(unreadable.insert(id, dir)),
                Recovered::LeftAlone => {}
            }
        }
        let to_seal: VecDeque<RunId> = runs
            .values()
            .filter(|run| run.wants_sealing())
            .map(Run::id)
            .collect();
        let next_arrival = runs
            .values()
            .map(|run| run.job.arrival.saturating_add(1))
            .max()
            .unwrap_or(0);
        if !runs.is_empty() {
            tracing::info!(
                "{} runs on disk, {} of them to be sealed",
                runs.len(),
                to_seal.len()
            );
        }
        let live_pace = Pace::new(config.live_bytes_per_second);
        let mut session = [0; 8];
        SystemRandom::new()
            .fill(&mut session)
            .map_err(|_| io::Error::other("the system gave no randomness"))?;
        Ok(Self {
            storage,
            config,
            identity,
            trust,
            facts,
            runs_dir,
            link,
            connected: false,
            runs,
            unreadable,
            session: u64::from_le_bytes(session),
            inventories: 0,
            last_inventory: None,
            repeat_at: None,
            refused: VecDeque::new(),
            next_arrival,
            active: None,
            fetching: None,
            to_seal,
            sealing: None,
            due: Due::default(),
            started: Instant::now(),
            heartbeats: 0,
            last_ended: None,
            last_heard: None,
            live: None,
            live_pace,
            stop_by: None,
        })
    }
}

/// The result of the recovery of a run.
pub(super) enum Recovered {
    /// The run continues.
    Run(Box<Run>),
    /// The run cannot be read now and is retried.
    Unreadable(RunDir),
    /// The run's documents do not parse, so a retry is useless.
    LeftAlone,
}

/// Recovers a run from its directory.
pub(super) fn recover_run(id: RunId, dir: RunDir, storage: &Storage) -> Recovered {
    let job = match dir.read_job() {
        Ok(job) => job,
        Err(RunDirError::Io { source, path, .. }) if source.kind() != io::ErrorKind::NotFound => {
            tracing::error!(
                "run {id}: {} cannot be read: {source}; tried again later",
                path.display()
            );
            return Recovered::Unreadable(dir);
        }
        Err(e) => {
            tracing::error!("run {id}: left alone: {:#}", anyhow::Error::from(e));
            return Recovered::LeftAlone;
        }
    };
    // A run without a readable spec cannot start again. If it has ended, it is still delivered.
    let window_policy = dir
        .spec()
        .inspect_err(|e| tracing::error!("run {id}: {e}"))
        .map(|spec| WindowPolicy::from(&spec))
        .unwrap_or_default();
    let mut run = Run::open(id, dir, job, window_policy, storage);
    if let Some(leftover) = run.job.process.take()
        && process::kill_leftover(&leftover)
    {
        tracing::warn!("run {id}: its process had outlived the daemon and was killed");
    }
    if was_cut_off(&run) {
        let reason = format!(
            "interrupted: the agent or the device went down while the run was {}",
            run.phase()
        );
        run.skip_revisions();
        run.end(Ending {
            phase: RunPhase::Failed,
            reason: Some(reason),
        });
    }
    // The run is delivered, but its last state was not written.
    run.settle_delivery();
    Recovered::Run(Box::new(run))
}

/// Returns whether the run was active when the daemon died, with an unknown end.
fn was_cut_off(run: &Run) -> bool {
    let on = !run.phase().is_final() && !run.waits_for_its_start();
    on && run.job.ending.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::run_dir::Job;

    #[test]
    fn a_run_that_was_cut_off_continues_above_every_published_revision() {
        let runs = tempfile::tempdir().unwrap();
        let storage = Storage {
            window_chunks: 4,
            reserve: Reserve::new(runs.path().join("reserve")),
        };
        let mut job = Job::queued(0);
        job.state.phase = RunPhase::Running;
        job.state.revision = 4;
        let id = RunId::now();
        let dir = RunDir::create(runs.path(), id, b"{}", &job).unwrap();
        let Recovered::Run(run) = recover_run(id, dir.clone(), &storage) else {
            panic!("the run is readable");
        };
        // A daemon with a full disk may have published revisions 5 and 6.
        assert!(run.provable_state().revision > 1_000_000);
        assert_eq!(dir.read_job().unwrap(), run.job);
    }
}
