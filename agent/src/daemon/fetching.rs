//! The thread that downloads a run's assets, and its reports. `assets.rs` handles the reports.

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

use crate::assets::{AssetError, Order, Progress, fetch};

/// Interval between progress reports.
const REPORT_EVERY: Duration = Duration::from_secs(2);

/// A running asset download.
#[derive(Debug)]
pub(super) struct Fetching {
    run: RunId,
    cancelled: Arc<AtomicBool>,
    news: mpsc::Receiver<FetchNews>,
}

/// A report of the download.
#[derive(Debug)]
pub(super) enum FetchNews {
    /// The progress.
    Progress(Progress),
    /// The download has finished or failed.
    Ended(Result<(), AssetError>),
}

impl Fetching {
    /// Starts the download thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(run: RunId, order: Order) -> io::Result<Self> {
        let cancelled = Arc::clone(&order.cancelled);
        let (sender, news) = mpsc::channel(4);
        let work = move || {
            let mut reported = Instant::now();
            let fetched = fetch(&order, &mut |progress| {
                if reported.elapsed() > REPORT_EVERY {
                    reported = Instant::now();
                    // If the channel is full, the daemon receives a later report.
                    let _ = sender.try_send(FetchNews::Progress(progress));
                }
            });
            // The receiver is gone when the daemon stops.
            let _ = sender.blocking_send(FetchNews::Ended(fetched));
        };
        thread::Builder::new().name("assets".to_owned()).spawn(work)?;
        Ok(Self { run, cancelled, news })
    }

    /// Returns the run that needs the assets.
    pub(super) const fn run(&self) -> RunId {
        self.run
    }

    /// Returns the next report. Cancel-safe.
    pub(super) async fn next(&mut self) -> FetchNews {
        let lost = FetchNews::Ended(Err(AssetError::Cancelled));
        self.news.recv().await.unwrap_or(lost)
    }

    /// Cancels the download.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Cancels the download if it is for this run.
    pub(super) fn cancel_for(&self, run: RunId) {
        if run == self.run {
            self.cancel();
        }
    }
}
