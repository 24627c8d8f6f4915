//! The sealer: which ended run is sealed next, and the thread that seals it. Runs are sealed one at a time. A run that could not be
//! sealed completely is sealed again after a pause. `seal.rs` implements sealing. The sealer does not know when sealing may begin.

pub(crate) mod seal;

use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    sync::Arc,
    time::{Duration, Instant},
};

use regatta_types::RunId;
use tokio::{
    select,
    sync::oneshot,
    task::{JoinHandle, spawn_blocking},
};

use self::seal::SealRequest;
use super::{
    device::Device,
    runs::{
        run::Run,
        sealed::{EVIDENCE, OnDisk, SealError, Sealed},
    },
};

/// The pause before a run is sealed again, and the longest one: each failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// The runs that wait for sealing, and the one that is being sealed.
#[derive(Debug)]
pub(crate) struct Sealer {
    waiting: VecDeque<RunId>,
    /// The runs that could not be sealed completely.
    retries: BTreeMap<RunId, Retry>,
    thread: Option<SealingThread>,
}

/// The next attempt to seal a run.
#[derive(Debug, Clone, Copy)]
struct Retry {
    /// `None` while the attempt is under way.
    at: Option<Instant>,
    pause: Duration,
}

/// An event of the sealing thread.
#[derive(Debug)]
pub(crate) enum SealEvent {
    /// These files are flushed and are being hashed.
    Flushed(RunId, OnDisk),
    /// The run is sealed, as far as possible.
    Sealed(RunId, Sealed),
}

/// A run that is being sealed on its own thread.
#[derive(Debug)]
struct SealingThread {
    run: RunId,
    /// Receives the flushed files, once.
    flushed: Option<oneshot::Receiver<OnDisk>>,
    sealed: JoinHandle<Sealed>,
}

impl Sealer {
    /// Returns a sealer for these runs.
    pub(crate) fn new(waiting: impl IntoIterator<Item = RunId>) -> Self {
        Self {
            waiting: waiting.into_iter().collect(),
            retries: BTreeMap::new(),
            thread: None,
        }
    }

    /// Adds a run that must be sealed.
    pub(crate) fn add(&mut self, run: RunId) {
        self.waiting.push_back(run);
    }

    /// Notes whether a run must be sealed again. This does not delay the next run.
    pub(crate) fn settle(&mut self, run: RunId, needs_sealing: bool, now: Instant) {
        if !needs_sealing {
            self.retries.remove(&run);
            return;
        }
        let pause = match self.retries.get(&run) {
            Some(last) => last.pause.saturating_mul(2).min(MAX_PAUSE),
            None => FIRST_PAUSE,
        };
        let at = Some(now + pause);
        self.retries.insert(run, Retry { at, pause });
        tracing::warn!("run {run}: sealed again in {} s", pause.as_secs());
    }

    /// Returns the time of the next attempt to seal a run again.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let attempts = self.retries.values().filter_map(|retry| retry.at);
        attempts.min().filter(|_| self.thread.is_none())
    }

    /// Returns whether no run is being sealed or waits for it.
    pub(crate) fn is_idle(&self) -> bool {
        self.thread.is_none() && self.waiting.is_empty()
    }

    /// Removes and returns the run to seal next. Returns `None` while another one is being sealed.
    pub(crate) fn take_next(&mut self, now: Instant) -> Option<RunId> {
        if self.thread.is_some() {
            return None;
        }
        self.waiting.pop_front().or_else(|| {
            let mut retries = self.retries.iter_mut();
            let (run, retry) = retries.find(|(_, retry)| retry.at.is_some_and(|at| at <= now))?;
            retry.at = None;
            Some(*run)
        })
    }

    /// Starts sealing a run on its own thread.
    pub(crate) fn start(&mut self, request: SealRequest) {
        let (report_flushed, flushed) = oneshot::channel();
        self.thread = Some(SealingThread {
            run: request.run,
            flushed: Some(flushed),
            sealed: spawn_blocking(move || seal::seal(&request, report_flushed)),
        });
    }

    /// Returns the next event of the sealing thread. Waits forever if there is none. Cancel-safe.
    pub(crate) async fn next(&mut self) -> SealEvent {
        let Some(thread) = &mut self.thread else {
            return pending().await;
        };
        let event = thread.next().await;
        if matches!(event, SealEvent::Sealed(..)) {
            self.thread = None;
        }
        event
    }
}

impl SealingThread {
    async fn next(&mut self) -> SealEvent {
        let run = self.run;
        let sealed = async {
            let sealed = (&mut self.sealed).await;
            let sealed = sealed.unwrap_or_else(|e| {
                tracing::error!("run {run}: the sealing thread ended: {e}");
                Sealed {
                    streams: Vec::new(),
                    unread: Vec::new(),
                    all_hashed: false,
                    incomplete: Some(SealError::Thread),
                }
            });
            SealEvent::Sealed(run, sealed)
        };
        let Some(flushed) = &mut self.flushed else {
            return sealed.await;
        };
        select! {
            biased;
            on_disk = flushed => {
                self.flushed = None;
                match on_disk {
                    Ok(on_disk) => SealEvent::Flushed(run, on_disk),
                    // The thread ends without having flushed.
                    Err(_) => SealEvent::Flushed(run, OnDisk::new()),
                }
            }
            sealed = sealed => sealed,
        }
    }
}

impl SealRequest {
    /// Returns the request to seal a run of this device.
    pub(crate) fn new(run: &Run, device: &Device) -> Self {
        let job = run.job();
        Self {
            run: run.id(),
            dir: run.dir().clone(),
            identity: Arc::clone(device.identity()),
            already_sealed: job.sealed && job.unsealed_files.is_empty(),
            failed_files: job.unsealed_files.clone(),
            listed_evidence: EVIDENCE
                .parse()
                .ok()
                .and_then(|evidence| run.delivery().sha256(&evidence)),
            outcome: run.provable_state(),
            before: job.before.clone(),
            after: device.facts().read(),
            window: job.window.clone(),
            device_state: job.device_state.clone(),
            foreign_root: device.foreign_root(),
        }
    }
}
