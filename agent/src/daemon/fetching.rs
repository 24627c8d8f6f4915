//! The thread that gets a run's assets, and what is heard of it. What its news mean for the run stands in `assets.rs`.

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

/// How often the run says how far it is.
const REPORT_EVERY: Duration = Duration::from_secs(2);

/// Assets on their way for one run.
#[derive(Debug)]
pub(super) struct Fetching {
    run: RunId,
    cancelled: Arc<AtomicBool>,
    news: mpsc::Receiver<FetchNews>,
}

/// What is heard of them.
#[derive(Debug)]
pub(super) enum FetchNews {
    /// How far it is.
    Progress(Progress),
    /// They are here, or will not be.
    Ended(Result<(), AssetError>),
}

impl Fetching {
    /// Starts the thread that gets what is ordered.
    ///
    /// # Errors
    /// When there can be no thread.
    pub(super) fn start(run: RunId, order: Order) -> io::Result<Self> {
        let cancelled = Arc::clone(&order.cancelled);
        let (sender, news) = mpsc::channel(4);
        let work = move || {
            let mut reported = Instant::now();
            let fetched = fetch(&order, &mut |progress| {
                if reported.elapsed() > REPORT_EVERY {
                    reported = Instant::now();
                    // A daemon that is busy hears the next one.
                    let _ = sender.try_send(FetchNews::Progress(progress));
                }
            });
            // Nobody listens when the daemon is ending.
            let _ = sender.blocking_send(FetchNews::Ended(fetched));
        };
        thread::Builder::new().name("assets".to_owned()).spawn(work)?;
        Ok(Self { run, cancelled, news })
    }

    /// The run that needs them.
    pub(super) const fn run(&self) -> RunId {
        self.run
    }

    /// The next news. Cancel-safe.
    pub(super) async fn next(&mut self) -> FetchNews {
        let lost = FetchNews::Ended(Err(AssetError::Cancelled));
        self.news.recv().await.unwrap_or(lost)
    }

    /// Nobody wants them any more.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// That run does not want them any more.
    pub(super) fn cancel_for(&self, run: RunId) {
        if run == self.run {
            self.cancel();
        }
    }
}
