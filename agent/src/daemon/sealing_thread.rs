//! The sealing thread and its reports. `sealing.rs` implements sealing.

use std::future::pending;

use regatta_types::RunId;
use tokio::{
    select,
    sync::oneshot,
    task::{JoinError, JoinHandle, spawn_blocking},
};

use super::sealing::{self, OnDisk, SealRequest, Sealed};

/// A run that is being sealed on its own thread.
pub(super) struct Sealing {
    /// The run's id.
    pub(super) run: RunId,
    /// Receives the flushed files, once.
    flushed: Option<oneshot::Receiver<OnDisk>>,
    thread: JoinHandle<Sealed>,
}

impl Sealing {
    /// Starts the thread.
    pub(super) fn start(request: SealRequest) -> Self {
        let (tell_flushed, flushed) = oneshot::channel();
        Self {
            run: request.run,
            flushed: Some(flushed),
            thread: spawn_blocking(move || sealing::seal(&request, tell_flushed)),
        }
    }
}

/// A report of the sealing thread.
pub(super) enum SealNews {
    /// These files are flushed and are being hashed.
    Flushed(RunId, OnDisk),
    /// The run is sealed, or the thread failed.
    Sealed(RunId, Result<Sealed, JoinError>),
}

/// Returns the next report of the sealing thread. Waits forever if there is none.
pub(super) async fn seal_news(sealing: &mut Option<Sealing>) -> SealNews {
    let Some(Sealing { run, flushed, thread }) = sealing else {
        return pending().await;
    };
    if let Some(waiting) = flushed {
        select! {
            biased;
            heard = waiting => {
                *flushed = None;
                if let Ok(on_disk) = heard {
                    return SealNews::Flushed(*run, on_disk);
                }
            }
            sealed = &mut *thread => return SealNews::Sealed(*run, sealed),
        }
    }
    SealNews::Sealed(*run, thread.await)
}
