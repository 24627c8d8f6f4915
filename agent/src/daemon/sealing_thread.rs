//! The thread that seals a run, and what is heard of it. How a run is sealed stands in `sealing.rs`.

use std::future::pending;

use regatta_types::RunId;
use tokio::{
    select,
    sync::oneshot,
    task::{JoinError, JoinHandle, spawn_blocking},
};

use super::sealing::{self, OnDisk, SealRequest, Sealed};

/// A run that is being sealed, on a thread of its own.
pub(super) struct Sealing {
    /// Which.
    pub(super) run: RunId,
    /// Hears once what of its files is on this disk.
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

/// What the sealing thread has come to.
pub(super) enum SealNews {
    /// These files are on this disk, and are being hashed.
    Flushed(RunId, OnDisk),
    /// It is done.
    Sealed(RunId, Result<Sealed, JoinError>),
}

/// The next news of the sealing thread; none without one.
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
