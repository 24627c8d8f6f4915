//! The thread that downloads a run's assets before the run starts, and its events. [`crate::assets`] implements the
//! download. A restarted daemon continues it.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use regatta_types::RunId;
use tokio::sync::mpsc;

use crate::{
    assets::{AssetError, DownloadProgress, FetchRequest, fetch},
    daemon::runs::events::RunStart,
};

/// Interval between progress events.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// A running download of the assets of a run.
#[derive(Debug)]
pub(super) struct AssetDownload {
    start: RunStart,
    cancelled: Arc<AtomicBool>,
    events: mpsc::Receiver<DownloadEvent>,
}

#[derive(Debug)]
pub(crate) enum DownloadEvent {
    Progress(DownloadProgress),
    /// The download has finished or failed.
    Ended(Result<(), AssetError>),
}

impl AssetDownload {
    /// Starts the download thread for the start of a run.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(start: RunStart, request: FetchRequest) -> io::Result<Self> {
        let cancelled = Arc::clone(&request.cancelled);
        let (sender, events) = mpsc::channel(4);
        let work = move || {
            let mut reported = Instant::now();
            let fetched = fetch(&request, &mut |progress| {
                if reported.elapsed() > REPORT_INTERVAL {
                    reported = Instant::now();
                    // If the channel is full, the daemon receives a later event.
                    let _ = sender.try_send(DownloadEvent::Progress(progress));
                }
            });
            // The receiver is gone when the daemon stops.
            let _ = sender.blocking_send(DownloadEvent::Ended(fetched));
        };
        thread::Builder::new().name("assets".to_owned()).spawn(work)?;
        Ok(Self {
            start,
            cancelled,
            events,
        })
    }

    /// Returns the run that needs the assets.
    pub(super) const fn run(&self) -> RunId {
        self.start.run
    }

    /// Returns the start that waits for the assets.
    pub(super) fn into_start(self) -> RunStart {
        self.start
    }

    /// Returns the next event. Cancel-safe.
    pub(super) async fn next(&mut self) -> DownloadEvent {
        let lost = DownloadEvent::Ended(Err(AssetError::Cancelled));
        self.events.recv().await.unwrap_or(lost)
    }

    /// Cancels the download. Downloaded data is kept.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns whether the download was cancelled: the run was aborted, or the daemon stops.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
