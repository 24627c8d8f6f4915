//! The active run: follows its process and its state guard from the start to the end, also when it is aborted. It
//! returns what the run queue must record, and does not know other runs.

use std::{future::pending, io, path::Path, process::ExitStatus, time::Instant};

use regatta_types::{
    ExitCode, RunId,
    documents::{RunPhase, end_reason},
};

use super::{
    extras::Extras,
    run_process::{ProcessEvent, RunProcess, describe_end},
    step::ExecutionStep,
    watch::{GuardEvent, StateGuard},
    window_meter::WindowMeter,
};
use crate::{
    daemon::runs::{
        events::{RunStart, RunUpdate},
        job::{Ending, ProcessIdentity},
        run_dir::RunDir,
        run_failure::RunFailure,
        window_policy::WindowPolicy,
    },
    run_process::event::RunProcessEvent,
};

#[derive(Debug)]
pub(super) struct ActiveRun {
    run: RunId,
    dir: RunDir,
    window_policy: WindowPolicy,
    /// The newest phase of the process that the state machine allows.
    phase: RunPhase,
    guard: StateGuard,
    /// The run process. It exists from the time when the device state is set until the process ends.
    process: Option<RunProcess>,
    /// The measurement window, while LoadGen runs.
    window: Option<WindowMeter>,
    /// The failure that the process reported, or that prevents its success.
    failure: Option<String>,
    /// How the run ends, if it was aborted or interrupted.
    requested_ending: Option<Ending>,
    kill_at: Option<Instant>,
    /// How the run ended. While this is set, the guard restores the device's state.
    ending: Option<Ending>,
    /// The truncated extras, once the disk is almost full.
    extras: Option<Extras>,
}

#[derive(Debug)]
pub(crate) enum ActiveRunEvent {
    /// An event of the run process.
    Process(ProcessEvent),
    /// An event of the state guard.
    Guard(GuardEvent),
}

impl ActiveRun {
    /// Returns a run whose state guard has just started.
    pub(super) fn new(start: RunStart, guard: StateGuard) -> Self {
        Self {
            run: start.run,
            dir: start.dir,
            window_policy: start.window_policy,
            phase: RunPhase::Preparing,
            guard,
            process: None,
            window: None,
            failure: None,
            requested_ending: None,
            kill_at: None,
            ending: None,
            extras: None,
        }
    }

    /// Returns the run's id.
    pub(super) const fn run(&self) -> RunId {
        self.run
    }

    /// Returns whether the measurement window is open.
    pub(super) const fn is_measuring(&self) -> bool {
        self.window.is_some()
    }

    /// Returns whether the run has ended, so that no process starts for it.
    pub(super) const fn has_ended(&self) -> bool {
        self.ending.is_some()
    }

    /// Starts the run process. The device is in the requested state.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub(super) fn start_process(&mut self, scratch: Option<&Path>) -> Result<ProcessIdentity, RunFailure> {
        let process =
            RunProcess::start(&self.dir, scratch).map_err(|e| format!("{}: {e}", end_reason::NO_PROCESS))?;
        let identity = process.identity();
        self.process = Some(process);
        Ok(identity)
    }

    /// Returns the run's directory.
    pub(super) const fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Kills the process and fails the run. The end of the process is handled as usual.
    pub(super) fn fail_process(&mut self, reason: String) {
        if let Some(process) = &self.process {
            process.kill();
        }
        self.failure = Some(reason);
    }

    /// Ends the run before its process has ended: SIGTERM now, SIGKILL at `kill_at`. Only the first request counts.
    pub(super) fn end_early(&mut self, ending: Ending, kill_at: Instant) {
        if self.requested_ending.is_none() {
            self.requested_ending = Some(ending);
            match &self.process {
                Some(process) => {
                    self.kill_at = Some(kill_at);
                    process.terminate();
                }
                None => self.restore_state(None),
            }
        }
    }

    /// Returns the time at which [`Self::handle_deadline`] must be called.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.kill_at
    }

    /// Kills a process that has not ended in time.
    pub(super) fn handle_deadline(&mut self, now: Instant) {
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            if let Some(process) = &self.process {
                process.kill();
            }
        }
    }

    /// Restores the device's state, because no process runs or will run. `otherwise` is the ending of a run that was
    /// not aborted or interrupted.
    pub(super) fn restore_state(&mut self, otherwise: Option<Ending>) {
        self.guard.stop();
        if self.ending.is_none() {
            self.ending = self.requested_ending.clone().or(otherwise);
        }
    }

    /// Returns how the run ended, after the last event of the guard.
    pub(super) fn into_ending(self) -> Ending {
        self.ending
            .unwrap_or_else(|| Ending::failed(end_reason::GUARD_ENDED.to_owned()))
    }

    /// Truncates the extras again, or for the first time if `free` bytes are too few. Returns whether this is the first
    /// time.
    pub(super) fn limit_extras(&mut self, free: impl FnOnce() -> Option<u64>) -> bool {
        if let Some(extras) = &self.extras {
            extras.truncate();
            return false;
        }
        let Some(free) = free() else { return false };
        tracing::warn!(
            "run {}: {} MiB are free: its extras stop here",
            self.run,
            free >> 20
        );
        self.extras = Some(Extras::stop(&self.dir.files(), free));
        true
    }

    /// Handles an event of the run process. `bytes_sent` is what the daemon has sent so far.
    pub(super) fn handle_process(&mut self, event: ProcessEvent, bytes_sent: u64) -> Vec<ExecutionStep> {
        match event {
            ProcessEvent::Reported(RunProcessEvent::Phase { phase }) => self.handle_phase(phase, bytes_sent),
            ProcessEvent::Reported(RunProcessEvent::Preparing { reason })
                if self.phase == RunPhase::Preparing =>
            {
                let update = RunUpdate::Phase(RunPhase::Preparing, Some(reason));
                vec![ExecutionStep::Update(update)]
            }
            ProcessEvent::Reported(RunProcessEvent::Preparing { .. }) => Vec::new(),
            ProcessEvent::Reported(RunProcessEvent::Failed { reason }) => {
                self.failure = Some(reason);
                Vec::new()
            }
            ProcessEvent::Ended(ended) => {
                let window_cost = self.close_window(bytes_sent);
                // Kill remaining child processes, so that they do not write into files that are sealed next.
                if let Some(process) = self.process.take() {
                    process.kill();
                }
                self.kill_at = None;
                if let Some(extras) = &self.extras {
                    extras.truncate();
                }
                let ending = self.judge_end(&ended);
                self.restore_state(Some(ending));
                window_cost
                    .into_iter()
                    .chain([ExecutionStep::LogsEnded])
                    .collect()
            }
        }
    }

    fn handle_phase(&mut self, phase: RunPhase, bytes_sent: u64) -> Vec<ExecutionStep> {
        let mut steps = Vec::new();
        if phase == RunPhase::Running {
            // The window opens before anything is written, so it includes the daemon's work for this phase.
            self.window = Some(WindowMeter::open(bytes_sent, self.window_policy));
        } else {
            steps.extend(self.close_window(bytes_sent));
        }
        self.guard.phase(phase);
        if matches!(phase, RunPhase::Ready | RunPhase::Running | RunPhase::Draining) {
            if self.phase.may_become(phase) {
                self.phase = phase;
            }
            steps.push(ExecutionStep::Update(RunUpdate::Phase(phase, None)));
        }
        steps
    }

    fn close_window(&mut self, bytes_sent: u64) -> Option<ExecutionStep> {
        let cost = self.window.take()?.close(bytes_sent);
        Some(ExecutionStep::Update(RunUpdate::WindowCost(cost)))
    }

    /// Returns the ending of the run from the end of its process.
    fn judge_end(&self, ended: &io::Result<ExitStatus>) -> Ending {
        if let Some(ending) = &self.requested_ending {
            return ending.clone();
        }
        if let Some(reason) = &self.failure {
            return Ending::failed(reason.clone());
        }
        // A run that LoadGen reports as INVALID has a negative answer. It has its logs, and the coordinator judges it.
        let code = ended.as_ref().ok().copied().and_then(ExitCode::of);
        let finished = matches!(code, Some(ExitCode::Success | ExitCode::Negative));
        match (finished, self.phase) {
            (true, RunPhase::Draining) => Ending {
                phase: RunPhase::Draining,
                reason: None,
            },
            (true, phase) => Ending::failed(format!(
                "the run process ended while {phase}, without finishing the run"
            )),
            (false, _) => Ending::failed(describe_end(ended)),
        }
    }

    /// Returns the next event of the run. Cancel-safe.
    pub(super) async fn next(&mut self) -> ActiveRunEvent {
        let Self { process, guard, .. } = self;
        let process = async {
            match process {
                Some(process) => process.next().await,
                None => pending().await,
            }
        };
        tokio::select! {
            event = process => ActiveRunEvent::Process(event),
            event = guard.next() => ActiveRunEvent::Guard(event),
        }
    }
}
