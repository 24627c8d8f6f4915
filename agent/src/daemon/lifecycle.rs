//! From queued to sealed: starts one run after the other, follows its process through the phases, and has it sealed when
//! it has ended.

use std::{
    future::pending,
    time::{Duration, Instant},
};

use regatta_rules::{
    RunId,
    documents::{Document as _, RunPhase, RunSpec, RunState},
};
use tokio::task::{JoinError, spawn_blocking};

use super::{
    assets,
    link::Link,
    process::{ProcessNews, RunProcess, describe_end},
    run_dir::Ending,
    sealing::{self, SealRequest, Sealed},
    service::Service,
    spool::Extras,
    watch::{Watch, WatchNews, WatchPlan},
    window::WindowMeter,
};
use crate::{exit, run_process::event::Event};

/// A delivery that has heard nothing for so long does not hold up the next run.
const HEARING_PATIENCE: Duration = Duration::from_secs(3);

/// The run that is on.
#[derive(Debug)]
pub(crate) struct Active {
    /// Which.
    pub(super) run: RunId,
    /// Its state guard.
    watch: Watch,
    /// Its process, from when the device is in the wished state until the process ends.
    process: Option<RunProcess>,
    /// Open while LoadGen runs.
    pub(super) window: Option<WindowMeter>,
    /// What the process says is wrong.
    failure: Option<String>,
    /// Set when the run is ended from outside.
    ending: Option<Ending>,
    kill_at: Option<Instant>,
    /// How the run ended: the device's state is being put back.
    outcome: Option<Ending>,
    /// Set when the disk is filling up.
    pub(super) extras: Option<Extras>,
}

impl Active {
    /// Ends the run because somebody asked for it.
    pub(super) fn abort(&mut self, reason: &str, kill_at: Instant) {
        self.end_from_outside(RunPhase::Aborted, reason, kill_at);
    }

    /// Ends the run because the daemon ends.
    pub(super) fn interrupt(&mut self, reason: &str, kill_at: Instant) {
        self.end_from_outside(RunPhase::Failed, reason, kill_at);
    }

    fn end_from_outside(&mut self, phase: RunPhase, reason: &str, kill_at: Instant) {
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
    fn wind_up(&mut self, otherwise: Option<Ending>) {
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

impl<L: Link> Service<L> {
    /// The queued run that arrived first.
    fn next_queued(&self) -> Option<RunId> {
        let queued = self.runs.values().filter(|run| run.waits_for_its_start());
        queued.min_by_key(|run| run.job.arrival).map(super::run::Run::id)
    }

    /// When the next queued run may start, if that is to be waited for: delivery goes first while somebody takes it.
    pub(super) fn next_start(&self, now: Instant) -> Option<Instant> {
        if self.active.is_some()
            || self.fetching.is_some()
            || self.sealing.is_some()
            || !self.to_seal.is_empty()
            || self.stop_by.is_some()
        {
            return None;
        }
        self.next_queued()?;
        let delivering = self.connected && self.runs.values().any(super::run::Run::has_backlog);
        let ended = self.last_ended.filter(|_| delivering)?;
        let heard = self.last_heard.map_or(ended, |heard| heard.max(ended));
        let start = (ended + self.config.deliver_first).min(heard + HEARING_PATIENCE);
        (start > now).then_some(start)
    }

    /// Starts the next queued run if its time has come.
    pub(super) fn start_next_run(&mut self, now: Instant) {
        let at_rest = self.active.is_none()
            && self.fetching.is_none()
            && self.sealing.is_none()
            && self.to_seal.is_empty();
        if !at_rest || self.next_start(now).is_some() {
            return;
        }
        let Some(id) = self.next_queued() else { return };
        if let Err(reason) = self.begin(id) {
            self.end_run(
                id,
                Ending {
                    phase: RunPhase::Failed,
                    reason: Some(reason),
                },
            );
        }
    }

    fn begin(&mut self, id: RunId) -> Result<(), String> {
        self.make_room()?;
        let assets = self.runs.get(&id).and_then(|run| assets::of_run(&run.dir));
        match assets {
            Some(assets) => self.begin_to_fetch(id, assets),
            None => self.begin_watch(id),
        }
    }

    /// Has the device brought into the run's state, and then its process started: everything that it needs is on the device.
    pub(super) fn begin_watch(&mut self, id: RunId) -> Result<(), String> {
        let Some(run) = self.runs.get_mut(&id) else {
            return Ok(());
        };
        self.reserve
            .set_aside()
            .map_err(|e| format!("the device cannot keep the run: no space for its evidence: {e}"))?;
        run.job.before = Some(self.facts.read());
        let watch = Watch::start(WatchPlan {
            state: run
                .dir
                .read_spec()
                .ok()
                .and_then(|spec| RunSpec::from_json(&spec).ok()?.state),
            socket: self.config.state_socket.clone(),
            root: self.config.system_root.clone(),
            files: run.dir.files(),
            timing_cpu: run.manners.timing_cpu,
        })
        .map_err(|e| format!("the device's state cannot be watched: {e}"))?;
        run.enter(RunPhase::Preparing, None);
        self.due.states.insert(id);
        self.active = Some(Active {
            run: id,
            watch,
            process: None,
            window: None,
            failure: None,
            ending: None,
            kill_at: None,
            outcome: None,
            extras: None,
        });
        self.next_live_look = run.manners.live.then(Instant::now);
        Ok(())
    }

    pub(super) fn take_run_news(&mut self, news: RunNews) {
        match news {
            RunNews::Process(news) => self.take_process_news(news),
            RunNews::Watch(news) => self.take_watch_news(news),
        }
    }

    fn take_watch_news(&mut self, news: WatchNews) {
        let Some(active) = &mut self.active else { return };
        let failed = |reason| Ending {
            phase: RunPhase::Failed,
            reason: Some(reason),
        };
        match news {
            WatchNews::Ready(proof) => {
                if let Some(run) = self.runs.get_mut(&active.run) {
                    run.job.device_state = Some(*proof);
                }
                // Somebody may have ended the run meanwhile.
                if active.outcome.is_none()
                    && let Err(reason) = self.start_process()
                    && let Some(active) = &mut self.active
                {
                    active.wind_up(Some(failed(reason)));
                }
            }
            WatchNews::Refused(reason) => active.wind_up(Some(failed(reason))),
            WatchNews::Lost(reason) => {
                let reason = format!("the device's state is no longer held: {reason}");
                active.end_from_outside(
                    RunPhase::Failed,
                    &reason,
                    Instant::now() + self.config.abort_grace,
                );
            }
            WatchNews::Ended(proof) => {
                let Some(active) = self.active.take() else { return };
                if let Some(run) = self.runs.get_mut(&active.run) {
                    run.job.device_state = Some(*proof);
                }
                self.next_live_look = None;
                let lost = || failed("the device's state guard ended early".to_owned());
                self.end_run(active.run, active.outcome.unwrap_or_else(lost));
            }
        }
    }

    /// The device is as it was wished: the run's process begins.
    fn start_process(&mut self) -> Result<(), String> {
        let id = self.active.as_ref().map(|active| active.run);
        let Some(run) = id.and_then(|id| self.runs.get(&id)) else {
            return Ok(());
        };
        let scratch = self.scratch_of(&run.dir)?;
        let Some(active) = &mut self.active else {
            return Ok(());
        };
        let Some(run) = self.runs.get_mut(&active.run) else {
            return Ok(());
        };
        let process = RunProcess::start(&run.dir, scratch.as_deref())
            .map_err(|e| format!("the run process cannot be started: {e}"))?;
        run.job.process = Some(process.identity());
        run.write_down();
        active.process = Some(process);
        Ok(())
    }

    fn take_process_news(&mut self, news: ProcessNews) {
        match news {
            ProcessNews::Said(Event::Phase { phase }) => self.take_phase(phase),
            ProcessNews::Said(Event::Failed { reason }) => {
                if let Some(active) = &mut self.active {
                    active.failure = Some(reason);
                }
            }
            ProcessNews::Ended(ended) => {
                self.close_window();
                let Some(mut active) = self.active.take() else {
                    return;
                };
                // Nothing that it started writes into files that are about to be sealed.
                if let Some(process) = active.process.take() {
                    process.kill();
                }
                active.kill_at = None;
                if let Some(extras) = &active.extras {
                    extras.cut();
                }
                self.next_live_look = None;
                let ending = self.judge_end(&active, &ended);
                active.wind_up(Some(ending));
                self.active = Some(active);
            }
        }
    }

    fn take_phase(&mut self, phase: RunPhase) {
        if phase != RunPhase::Running {
            self.close_window();
        }
        let Some(active) = &mut self.active else { return };
        // The window opens before anything is written: what the daemon does about the phase counts.
        if phase == RunPhase::Running {
            let manners = self.runs.get(&active.run).map(|run| run.manners);
            let bytes_sent = self.link.bytes_sent();
            active.window = Some(WindowMeter::open(bytes_sent, manners.unwrap_or_default()));
        }
        active.watch.phase(phase);
        if matches!(phase, RunPhase::Preparing) {
            return;
        }
        if matches!(phase, RunPhase::Ready | RunPhase::Running | RunPhase::Draining)
            && let Some(run) = self.runs.get_mut(&active.run)
            && run.enter(phase, None)
        {
            self.due.states.insert(active.run);
        }
    }

    fn close_window(&mut self) {
        let bytes_sent = self.link.bytes_sent();
        let Some(active) = &mut self.active else { return };
        if let (Some(window), Some(run)) = (active.window.take(), self.runs.get_mut(&active.run)) {
            run.job.window = window.close(bytes_sent);
        }
    }

    /// What the end of a run process means for its run.
    fn judge_end(&self, active: &Active, ended: &std::io::Result<std::process::ExitStatus>) -> Ending {
        if let Some(ending) = &active.ending {
            return ending.clone();
        }
        let failed = |reason| Ending {
            phase: RunPhase::Failed,
            reason: Some(reason),
        };
        if let Some(reason) = &active.failure {
            return failed(reason.clone());
        }
        let phase = self.runs.get(&active.run).map(super::run::Run::phase);
        let code = ended.as_ref().ok().and_then(std::process::ExitStatus::code);
        // A run that LoadGen calls INVALID ends with `NO`: it has its logs, and is judged by the coordinator.
        let finished =
            matches!(code, Some(code) if code == i32::from(exit::OK) || code == i32::from(exit::NO));
        match (finished, phase) {
            (true, Some(RunPhase::Draining)) => Ending {
                phase: RunPhase::Draining,
                reason: None,
            },
            (true, Some(phase)) => failed(format!(
                "the run process ended while {phase}, without finishing the run"
            )),
            _ => failed(describe_end(ended)),
        }
    }

    /// A run has ended, one way or another: it is to be sealed.
    pub(super) fn end_run(&mut self, id: RunId, ending: Ending) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        self.reserve.release_if_full();
        run.end(ending);
        self.last_ended = Some(Instant::now());
        self.to_seal.push_back(id);
    }

    /// Seals the next run that has ended, one at a time and never beside a running one. Its files grow no more: they go
    /// on their way while they are hashed.
    pub(super) fn seal_next(&mut self) {
        if self.sealing.is_some() || self.active.is_some() {
            return;
        }
        let Some(id) = self.to_seal.pop_front() else {
            return;
        };
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.open_for_delivery();
        let ending = run.job.ending.clone().unwrap_or(Ending {
            phase: run.phase(),
            reason: None,
        });
        let request = SealRequest {
            run: id,
            dir: run.dir.clone(),
            identity: std::sync::Arc::clone(&self.identity),
            already_sealed: run.job.sealed,
            outcome: RunState {
                phase: ending.phase,
                reason: ending.reason,
                revision: run.job.state.revision.saturating_add(1),
            },
            before: run.job.before.clone(),
            after: self.facts.read(),
            window: run.job.window.clone(),
            device_state: run.job.device_state.clone(),
            foreign_root: foreign_root(&self.config.system_root),
        };
        self.sealing = Some((id, spawn_blocking(move || sealing::seal(&request))));
    }

    pub(super) fn take_sealed(&mut self, id: RunId, sealed: Result<Sealed, JoinError>) {
        self.sealing = None;
        let sealed = sealed.unwrap_or_else(|e| {
            tracing::error!("run {id}: the sealing thread ended: {e}");
            Sealed {
                streams: Vec::new(),
                incomplete: Some(sealing::SealError::Thread),
            }
        });
        if let Some(run) = self.runs.get_mut(&id) {
            run.take_sealed(sealed);
            run.settle_delivery();
            self.due.states.insert(id);
        }
    }
}

/// Why what was read of the device says nothing about it.
fn foreign_root(root: &std::path::Path) -> Option<String> {
    (root != std::path::Path::new("/")).then(|| {
        format!(
            "the device's state and sensors were read below {}, not from the machine itself",
            root.display()
        )
    })
}
