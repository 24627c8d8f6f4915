//! The life of a run from queued to ended: starts one run at a time and follows its process through the phases.

use std::time::{Duration, Instant};

use regatta_types::{RunId, documents::RunPhase};

use super::{
    active::{Active, RunNews},
    assets,
    link::Link,
    live_files::end_live,
    process::{ProcessNews, RunProcess, describe_end},
    run_dir::Ending,
    service::Service,
    watch::{Watch, WatchNews, WatchPlan},
    window::WindowMeter,
};
use crate::{exit, run_process::event::Event};

/// Time without acknowledgements after which delivery no longer delays the next run.
const HEARING_PATIENCE: Duration = Duration::from_secs(3);

impl<L: Link> Service<L> {
    /// Returns the queued run that arrived first.
    fn next_queued(&self) -> Option<RunId> {
        let queued = self.runs.values().filter(|run| run.waits_for_its_start());
        queued.min_by_key(|run| run.job.arrival).map(super::run::Run::id)
    }

    /// Returns the earliest start of the next queued run, if it must wait. Delivery goes first while acknowledgements
    /// arrive.
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

    /// Starts the next queued run if it is due.
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
        self.free_space()?;
        let assets = self.runs.get(&id).map(|run| assets::of_run(&run.dir));
        match assets.transpose()?.flatten() {
            Some(assets) => self.begin_to_fetch(id, assets),
            None => self.begin_watch(id),
        }
    }

    /// Starts the state guard. All assets of the run are on the device. The run process starts when the state is set.
    pub(super) fn begin_watch(&mut self, id: RunId) -> Result<(), String> {
        let Some(run) = self.runs.get_mut(&id) else {
            return Ok(());
        };
        // If the spec cannot be read, the run is not measured, because its device state is unknown.
        let spec = run
            .dir
            .spec()
            .map_err(|e| format!("{:#}", anyhow::Error::from(e)))?;
        self.storage
            .reserve
            .set_aside()
            .map_err(|e| format!("the device cannot keep the run: no space for its evidence: {e}"))?;
        run.job.before = Some(self.facts.read());
        let watch = Watch::start(WatchPlan {
            state: spec.state,
            socket: self.config.state_socket.clone(),
            root: self.config.system_root.clone(),
            files: run.dir.files(),
            timing_cpu: run.window_policy.timing_cpu,
        })
        .map_err(|e| format!("the device's state cannot be watched: {e}"))?;
        run.enter(RunPhase::Preparing, None);
        self.due.states.insert(id);
        self.active = Some(Active::new(id, watch));
        self.begin_live(id);
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
                // The run may have been aborted meanwhile.
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
                end_live(&mut self.live);
                let lost = || failed("the device's state guard ended early".to_owned());
                self.end_run(active.run, active.outcome.unwrap_or_else(lost));
            }
        }
    }

    /// Starts the run process. The device is in the requested state.
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
        if let Err(e) = run.try_write_down() {
            // A restarted daemon could not kill the process. Kill it now and handle its end as usual.
            process.kill();
            let why = anyhow::Error::from(e);
            active.failure = Some(format!("the run process cannot be recorded: {why:#}"));
        }
        active.process = Some(process);
        Ok(())
    }

    fn take_process_news(&mut self, news: ProcessNews) {
        match news {
            ProcessNews::Reported(Event::Phase { phase }) => self.take_phase(phase),
            ProcessNews::Reported(Event::Failed { reason }) => {
                if let Some(active) = &mut self.active {
                    active.failure = Some(reason);
                }
            }
            ProcessNews::Ended(ended) => {
                self.close_window();
                let Some(mut active) = self.active.take() else {
                    return;
                };
                // Kill remaining child processes, so that they do not write into files that are sealed next.
                if let Some(process) = active.process.take() {
                    process.kill();
                }
                active.kill_at = None;
                if let Some(extras) = &active.extras {
                    extras.cut();
                }
                end_live(&mut self.live);
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
        // The window opens before anything is written, so it includes the daemon's work for this phase.
        if phase == RunPhase::Running {
            let window_policy = self.runs.get(&active.run).map(|run| run.window_policy);
            let bytes_sent = self.link.bytes_sent();
            active.window = Some(WindowMeter::open(bytes_sent, window_policy.unwrap_or_default()));
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

    /// Returns the ending of a run from the end of its process.
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
        // A run that LoadGen reports as INVALID ends with `NO`. It has its logs, and the coordinator judges it.
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
}
