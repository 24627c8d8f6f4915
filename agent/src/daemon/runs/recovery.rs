//! Recovery of a run after a restart of the daemon or a power cut: brings the run into a state from which the state
//! machine can continue.

use std::io;

use regatta_board::FactsReader;
use regatta_types::{
    RunId,
    documents::{RunPhase, end_reason},
};

use super::{
    job::{Ending, ProcessIdentity},
    leftover_process::kill_leftover,
    run::Run,
    run_dir::{RunDir, RunDirError},
    storage::Storage,
    window_policy::WindowPolicy,
};

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
    let leftover = run.take_process();
    let boot_id = boot_id_of(&run, leftover.as_ref());
    if leftover.is_some_and(|leftover| kill_leftover(&leftover)) {
        tracing::warn!("run {id}: its process had outlived the daemon and was killed");
    }
    if was_cut_off(&run) {
        let reason = format!(
            "{} while the run was {}",
            what_went_down(boot_id.as_deref()),
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

/// Returns the id of the boot in which the run was active.
fn boot_id_of(run: &Run, process: Option<&ProcessIdentity>) -> Option<String> {
    let of_process = process.map(|process| process.boot_id.clone());
    of_process.or_else(|| run.job().before.as_ref()?.boot_id.clone())
}

/// Returns whether the device has rebooted since the boot `then`, as the beginning of a reason.
fn what_went_down(then: Option<&str>) -> &'static str {
    let now = FactsReader::of_this_machine().boot_id();
    match (then, now) {
        (Some(then), Some(now)) if then == now => end_reason::AGENT_DOWN,
        (Some(then), Some(_)) if !then.is_empty() => end_reason::DEVICE_DOWN,
        _ => end_reason::WENT_DOWN,
    }
}

/// Returns whether the run was active when the daemon died, with an unknown end.
fn was_cut_off(run: &Run) -> bool {
    let on = !run.phase().is_final() && !run.waits_for_its_start();
    on && run.job().ending.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::{durable::Reserve, runs::job::Job};

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
        assert_eq!(dir.read_job().unwrap(), *run.job());
    }
}
