//! The run that is on: its state guard, its process, and how it is ended from outside. What its news mean for the daemon
//! stands in `lifecycle.rs`.

use std::{future::pending, time::Instant};

use regatta_types::{RunId, documents::RunPhase};

use super::{
    extras::Extras,
    process::{ProcessNews, RunProcess},
    run_dir::Ending,
    watch::{Watch, WatchNews},
    window::WindowMeter,
};

/// The run that is on.
#[derive(Debug)]
pub(crate) struct Active {
    /// Which.
    pub(super) run: RunId,
    /// Its state guard.
    pub(super) watch: Watch,
    /// Its process, from when the device is in the requested state until the process ends.
    pub(super) process: Option<RunProcess>,
    /// Open while LoadGen runs.
    pub(super) window: Option<WindowMeter>,
    /// What the process says is wrong.
    pub(super) failure: Option<String>,
    /// Set when the run is ended from outside.
    pub(super) ending: Option<Ending>,
    pub(super) kill_at: Option<Instant>,
    /// How the run ended: the device's state is being put back.
    pub(super) outcome: Option<Ending>,
    /// Set when the disk is filling up.
    pub(super) extras: Option<Extras>,
}

impl Active {
    /// A run whose state guard has just begun.
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

    /// Ends the run because somebody asked for it.
    pub(super) fn abort(&mut self, reason: &str, kill_at: Instant) {
        self.end_from_outside(RunPhase::Aborted, reason, kill_at);
    }

    /// Ends the run because the daemon ends.
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

    /// No process runs any more, or will: the device's state is put back. `otherwise` is how the run ended when nobody
    /// ended it from outside.
    pub(super) fn wind_up(&mut self, otherwise: Option<Ending>) {
        self.watch.stop();
        if self.outcome.is_none() {
            self.outcome = self.ending.clone().or(otherwise);
        }
    }

    /// What happens next to the run. Cancel-safe.
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

/// What happens to the run that is on.
#[derive(Debug)]
pub(crate) enum RunNews {
    /// Its process says something.
    Process(ProcessNews),
    /// Its state guard does.
    Watch(WatchNews),
}
