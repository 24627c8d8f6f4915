//! The active run: its state guard, its process, and its termination on request. `lifecycle.rs` handles its events.

use std::{future::pending, time::Instant};

use regatta_types::{RunId, documents::RunPhase};

use super::{
    extras::Extras,
    process::{ProcessNews, RunProcess},
    run_dir::Ending,
    watch::{Watch, WatchNews},
    window::WindowMeter,
};

/// The active run.
#[derive(Debug)]
pub(crate) struct Active {
    /// The run's id.
    pub(super) run: RunId,
    /// The state guard.
    pub(super) watch: Watch,
    /// The run process. It exists from the time when the device state is set until the process ends.
    pub(super) process: Option<RunProcess>,
    /// The measurement window, while LoadGen runs.
    pub(super) window: Option<WindowMeter>,
    /// The failure that the process reported.
    pub(super) failure: Option<String>,
    /// How the run ends, if it was aborted or interrupted.
    pub(super) ending: Option<Ending>,
    pub(super) kill_at: Option<Instant>,
    /// How the run ended. While this is set, the guard restores the device's state.
    pub(super) outcome: Option<Ending>,
    /// The truncated extras, once the disk is almost full.
    pub(super) extras: Option<Extras>,
}

impl Active {
    /// Returns a run whose state guard has just started.
    pub(super) const fn new(run: RunId, watch: Watch) -> Self {
        Self {
            run,
            watch,
            process: None,
            window: None,
            failure: None,
            ending: None,
            kill_at: None,
            outcome: None,
            extras: None,
        }
    }

    /// Aborts the run on request of the coordinator.
    pub(super) fn abort(&mut self, reason: &str, kill_at: Instant) {
        self.end_from_outside(RunPhase::Aborted, reason, kill_at);
    }

    /// Ends the run because the daemon stops.
    pub(super) fn interrupt(&mut self, reason: &str, kill_at: Instant) {
        self.end_from_outside(RunPhase::Failed, reason, kill_at);
    }

    pub(super) fn end_from_outside(&mut self, phase: RunPhase, reason: &str, kill_at: Instant) {
        if self.ending.is_none() {
            self.ending = Some(Ending {
                phase,
                reason: Some(reason.to_owned()),
            });
            match &self.process {
                Some(process) => {
                    self.kill_at = Some(kill_at);
                    process.terminate();
                }
                None => self.wind_up(None),
            }
        }
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.kill_at
    }

    pub(super) fn on_time(&mut self, now: Instant) {
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            if let Some(process) = &self.process {
                process.kill();
            }
        }
    }

    /// Restores the device's state, because no process runs or will run. `otherwise` is the ending of a run that was
    /// not aborted or interrupted.
    pub(super) fn wind_up(&mut self, otherwise: Option<Ending>) {
        self.watch.stop();
        if self.outcome.is_none() {
            self.outcome = self.ending.clone().or(otherwise);
        }
    }

    /// Returns the next event of the run. Cancel-safe.
    pub(super) async fn next(&mut self) -> RunNews {
        let Self { process, watch, .. } = self;
        let process = async {
            match process {
                Some(process) => process.next().await,
                None => pending().await,
            }
        };
        tokio::select! {
            news = process => RunNews::Process(news),
            news = watch.next() => RunNews::Watch(news),
        }
    }
}

/// An event of the active run.
#[derive(Debug)]
pub(crate) enum RunNews {
    /// An event of the run process.
    Process(ProcessNews),
    /// An event of the state guard.
    Watch(WatchNews),
}
