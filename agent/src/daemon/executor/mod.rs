//! The executor: prepares one run at a time, starts its state guard and its process, and follows them to the end. It
//! owns everything that runs for the active run. The run queue decides which run that is, and records what happens.

mod active_run;
mod asset_download;
mod extras;
pub(crate) mod run_process;
mod scratch;
pub(crate) mod step;
pub(crate) mod watch;
mod window_meter;

use std::{future::pending, sync::Arc, time::Instant};

use regatta_fsutil::free_space::free_bytes;
use regatta_types::{
    RunId,
    documents::{RunPhase, end_reason},
};

use self::{
    active_run::{ActiveRun, ActiveRunEvent},
    asset_download::{AssetDownload, DownloadEvent},
    scratch::scratch_of,
    step::ExecutionStep,
    watch::{GuardEvent, StateGuard, WatchPlan},
};
use super::{
    device::Device,
    durable::Reserve,
    runs::{
        events::{RequiredAssets, RunStart, RunUpdate},
        job::Ending,
        run_failure::RunFailure,
        storage::{Storage, runs_dir},
    },
};
use crate::{
    assets::{AssetError, DownloadProgress, FetchRequest, Limits, server_at},
    config::AgentConfig,
};

/// The run that is being prepared or executed, if any.
#[derive(Debug)]
pub(crate) struct Executor {
    config: Arc<AgentConfig>,
    reserve: Reserve,
    download: Option<AssetDownload>,
    active: Option<ActiveRun>,
}

/// An event that the executor waits for.
#[derive(Debug)]
pub(crate) enum ExecutorEvent {
    /// An event of the asset download.
    Download(DownloadEvent),
    ActiveRun(ActiveRunEvent),
}

/// The steps of one run, in order.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) run: RunId,
    /// What has happened.
    pub(crate) steps: Vec<ExecutionStep>,
}

impl Executor {
    /// Returns an executor without a run.
    pub(crate) fn new(config: Arc<AgentConfig>) -> Self {
        Self {
            reserve: Storage::new(&config).reserve,
            config,
            download: None,
            active: None,
        }
    }

    /// Returns whether no run is active or being prepared.
    pub(crate) const fn is_idle(&self) -> bool {
        self.active.is_none() && self.download.is_none()
    }

    /// Returns whether a run is active: its state guard or its process runs.
    pub(crate) const fn has_active_run(&self) -> bool {
        self.active.is_some()
    }

    /// Returns the run whose measurement window is open.
    pub(crate) fn measuring(&self) -> Option<RunId> {
        let active = self.active.as_ref().filter(|active| active.is_measuring());
        active.map(ActiveRun::run)
    }

    /// Starts a run: downloads its assets first, if it needs any.
    pub(crate) fn start(&mut self, mut start: RunStart, device: &Device) -> Execution {
        let (run, mut steps) = (start.run, Vec::new());
        let started = match start.assets.take() {
            Some(required) => self.start_download(start, required, device, &mut steps),
            None => self.start_guard(start, device, &mut steps),
        };
        steps.extend(started.err().map(failed));
        Execution { run, steps }
    }

    fn start_download(
        &mut self,
        start: RunStart,
        RequiredAssets { mut assets, pinned }: RequiredAssets,
        device: &Device,
        steps: &mut Vec<ExecutionStep>,
    ) -> Result<(), RunFailure> {
        if let Some(host) = &self.config.coordinator {
            assets.server = server_at(&assets.server, host);
        }
        steps.push(preparing(None));
        let request = FetchRequest {
            state_dir: self.config.state_dir.clone(),
            identity: Arc::clone(device.identity()),
            assets,
            pinned,
            limits: Limits {
                stays_free: self.config.min_free_bytes,
                most: self.config.assets_max_bytes,
            },
            cancelled: Arc::default(),
        };
        let download =
            AssetDownload::start(start, request).map_err(|e| format!("{}: {e}", end_reason::NO_DOWNLOAD))?;
        self.download = Some(download);
        Ok(())
    }

    /// Starts the state guard. All assets of the run are on the device. The run process starts when the state is set.
    fn start_guard(
        &mut self,
        start: RunStart,
        device: &Device,
        steps: &mut Vec<ExecutionStep>,
    ) -> Result<(), RunFailure> {
        // If the spec cannot be read, the run is not measured, because its device state is unknown.
        let spec = start.dir.spec().map_err(RunFailure::of)?;
        self.reserve
            .set_aside()
            .map_err(|e| format!("{}: no space for its evidence: {e}", end_reason::NO_SPACE))?;
        // A run that waits for its gate has not begun: a restarted daemon begins the wait again.
        if spec.gate.is_none() {
            steps.push(facts_before(device));
        }
        let guard = StateGuard::start(WatchPlan {
            state: spec.state,
            gate: spec.gate,
            socket: self.config.state_socket.clone(),
            root: self.config.system_root.clone(),
            wall_meter: self.config.wall_meter.clone(),
            files: start.dir.files(),
            timing_cpu: start.window_policy.timing_cpu,
        })
        .map_err(|e| format!("{}: {e}", end_reason::STATE_UNWATCHED))?;
        steps.push(preparing(None));
        steps.push(ExecutionStep::Activated);
        self.active = Some(ActiveRun::new(start, guard));
        Ok(())
    }

    /// Returns the next event. Waits forever if there is no run. Cancel-safe.
    pub(crate) async fn next(&mut self) -> ExecutorEvent {
        let Self { download, active, .. } = self;
        let download = async {
            match download {
                Some(download) => download.next().await,
                None => pending().await,
            }
        };
        let active = async {
            match active {
                Some(active) => active.next().await,
                None => pending().await,
            }
        };
        tokio::select! {
            event = download => ExecutorEvent::Download(event),
            event = active => ExecutorEvent::ActiveRun(event),
        }
    }

    /// Handles an event. `bytes_sent` is what the daemon has sent so far.
    pub(crate) fn handle(
        &mut self,
        event: ExecutorEvent,
        device: &Device,
        bytes_sent: u64,
        now: Instant,
    ) -> Option<Execution> {
        match event {
            ExecutorEvent::Download(DownloadEvent::Progress(progress)) => {
                let download = self
                    .download
                    .as_ref()
                    .filter(|download| !download.is_cancelled())?;
                Some(Execution {
                    run: download.run(),
                    steps: vec![preparing(Some(describe(&progress)))],
                })
            }
            ExecutorEvent::Download(DownloadEvent::Ended(fetched)) => self.handle_assets(fetched, device),
            ExecutorEvent::ActiveRun(event) => {
                let run = self.active.as_ref()?.run();
                let steps = match event {
                    ActiveRunEvent::Process(event) => self.active.as_mut()?.handle_process(event, bytes_sent),
                    ActiveRunEvent::Guard(event) => self.handle_guard(event, device, now),
                };
                Some(Execution { run, steps })
            }
        }
    }

    fn handle_assets(&mut self, fetched: Result<(), AssetError>, device: &Device) -> Option<Execution> {
        let download = self.download.take().filter(|download| !download.is_cancelled())?;
        let (run, mut steps) = (download.run(), Vec::new());
        let started = fetched
            .map_err(RunFailure::of)
            .and_then(|()| self.start_guard(download.into_start(), device, &mut steps));
        steps.extend(started.err().map(failed));
        Some(Execution { run, steps })
    }

    fn handle_guard(&mut self, event: GuardEvent, device: &Device, now: Instant) -> Vec<ExecutionStep> {
        let Some(active) = &mut self.active else {
            return Vec::new();
        };
        let mut steps = Vec::new();
        match event {
            GuardEvent::Waiting(reason) if !active.has_ended() => steps.push(preparing(Some(reason))),
            GuardEvent::GateOpened if !active.has_ended() => {
                steps.extend([facts_before(device), preparing(None)])
            }
            GuardEvent::Waiting(_) | GuardEvent::GateOpened => {}
            GuardEvent::Ready(proof) => {
                steps.push(ExecutionStep::Update(RunUpdate::DeviceState(proof)));
                // The run may have been aborted meanwhile.
                if !active.has_ended() {
                    let started = scratch_of(active.dir(), &self.config)
                        .and_then(|scratch| active.start_process(scratch.as_deref()));
                    match started {
                        Ok(process) => steps.push(ExecutionStep::ProcessStarted(process)),
                        Err(RunFailure(reason)) => active.restore_state(Some(Ending::failed(reason))),
                    }
                }
            }
            GuardEvent::Refused(RunFailure(reason)) => active.restore_state(Some(Ending::failed(reason))),
            GuardEvent::Lost(RunFailure(reason)) => {
                let reason = format!("{}: {reason}", end_reason::STATE_LOST);
                active.end_early(Ending::failed(reason), now + self.config.abort_grace);
            }
            GuardEvent::Ended(proof) => {
                steps.push(ExecutionStep::Update(RunUpdate::DeviceState(proof)));
                steps.push(ExecutionStep::LogsEnded);
                let ended = self.active.take().map(ActiveRun::into_ending);
                steps.extend(ended.map(|ending| ExecutionStep::Update(RunUpdate::Ended(ending))));
            }
        }
        steps
    }

    /// Kills a process that could not be recorded, because a restarted daemon could not kill it. The run fails.
    pub(crate) fn reject_process(&mut self, error: anyhow::Error) {
        if let Some(active) = &mut self.active {
            active.fail_process(format!("{}: {error:#}", end_reason::PROCESS_UNRECORDED));
        }
    }

    /// Aborts the run if it is active, or cancels the download of its assets. Returns whether it is active.
    pub(crate) fn abort(&mut self, run: RunId, reason: &str, now: Instant) -> bool {
        if let Some(download) = self.download.as_ref().filter(|download| download.run() == run) {
            download.cancel();
        }
        let active = self.active.as_mut().filter(|active| active.run() == run);
        let is_active = active.is_some();
        if let Some(active) = active {
            let ending = Ending {
                phase: RunPhase::Aborted,
                reason: Some(reason.to_owned()),
            };
            active.end_early(ending, now + self.config.abort_grace);
        }
        is_active
    }

    /// Interrupts the active run, because the daemon stops. A download continues when the daemon restarts.
    pub(crate) fn stop(&mut self, now: Instant) {
        if let Some(download) = &self.download {
            download.cancel();
        }
        if let Some(active) = &mut self.active {
            let ending = Ending::failed(end_reason::AGENT_STOPPED.to_owned());
            active.end_early(ending, now + self.config.abort_grace);
        }
    }

    /// Truncates the active run's extras when the disk is almost full.
    pub(crate) fn check_free_space(&mut self) -> Option<Execution> {
        let active = self.active.as_mut()?;
        let smallest = self.config.min_free_bytes / 2;
        let too_few = || {
            free_bytes(&runs_dir(&self.config))
                .ok()
                .filter(|free| *free < smallest)
        };
        active.limit_extras(too_few).then(|| Execution {
            run: active.run(),
            steps: vec![ExecutionStep::LogsEnded],
        })
    }

    /// Returns the time at which [`Self::handle_deadline`] must be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.active.as_ref()?.deadline()
    }

    /// Kills a process that has not ended in time.
    pub(crate) fn handle_deadline(&mut self, now: Instant) {
        if let Some(active) = &mut self.active {
            active.handle_deadline(now);
        }
    }
}

fn facts_before(device: &Device) -> ExecutionStep {
    let facts = Box::new(device.facts().read());
    ExecutionStep::Update(RunUpdate::FactsBefore(facts))
}

fn preparing(reason: Option<String>) -> ExecutionStep {
    ExecutionStep::Update(RunUpdate::Phase(RunPhase::Preparing, reason))
}

fn failed(RunFailure(reason): RunFailure) -> ExecutionStep {
    ExecutionStep::Update(RunUpdate::Ended(Ending::failed(reason)))
}

/// Describes the progress of a download for the run's state.
fn describe(progress: &DownloadProgress) -> String {
    let waits = progress
        .waits
        .as_ref()
        .map_or_else(String::new, |why| format!("; {why}"));
    format!(
        "{} of {} MiB of assets are here{waits}",
        progress.done >> 20,
        progress.total.div_ceil(1 << 20)
    )
}
