//! The sealer: which ended run is sealed next, and the thread that seals it. Runs are sealed one at a time. `seal.rs`
//! implements sealing. The sealer does not know when sealing may begin.

pub(crate) mod seal;

use std::{collections::VecDeque, future::pending, sync::Arc};

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

/// The runs that wait for sealing, and the one that is being sealed.
#[derive(Debug)]
pub(crate) struct Sealer {
    waiting: VecDeque<RunId>,
    thread: Option<SealingThread>,
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
            thread: None,
        }
    }

    /// Adds a run that must be sealed.
    pub(crate) fn add(&mut self, run: RunId) {
        self.waiting.push_back(run);
    }

    /// Returns whether no run is being sealed or waits for it.
    pub(crate) fn is_idle(&self) -> bool {
        self.thread.is_none() && self.waiting.is_empty()
    }

    /// Removes and returns the run to seal next. Returns `None` while another one is being sealed.
    pub(crate) fn take_next(&mut self) -> Option<RunId> {
        if self.thread.is_some() {
            return None;
        }
        self.waiting.pop_front()
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
