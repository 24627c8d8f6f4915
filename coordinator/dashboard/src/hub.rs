//! Shares renderings among open pages: each watched view is rendered at most once a second, only after a change, and never while nobody
//! watches. On large fleets renderings take longer, and are rarer, so that pages take little of the time that devices need.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use regatta_types::RunId;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

use super::{
    pieces::Pieces,
    run_page::RunCharts,
    view::{MAX_VIEWS, Reader, View},
    work_queues::WorkQueues,
};
use regatta_lab_store::{self as store, StoreError};

/// The shortest time between two renderings.
const PACE: Duration = Duration::from_secs(1);
/// The longest time between two renderings of a watched view: silence and elapsed minutes change without the store.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The ratio of the pause after a rendering of all views to its processor time. Pages then take about a twentieth of a core.
const PAUSE_PER_RENDERING: u32 = 20;

/// The renderings of all open pages.
pub(super) struct Hub {
    reader: Mutex<Reader>,
    watched: Mutex<HashMap<View, watch::Sender<Arc<Pieces>>>>,
    queues: WorkQueues,
}

/// A rendering of all watched views.
struct Refreshed {
    /// The version of the store at the previous rendering. `None` when a view failed, so that all views are rendered again soon.
    version: Option<i64>,
    /// Its processor time.
    cost: Duration,
}

impl Hub {
    /// Creates a hub without pages.
    pub(super) fn new(reader: Reader) -> Arc<Self> {
        Arc::new(Self {
            reader: Mutex::new(reader),
            watched: Mutex::default(),
            queues: WorkQueues::new(),
        })
    }

    /// Returns the queues of the work of requests.
    pub(super) const fn queues(&self) -> &WorkQueues {
        &self.queues
    }

    /// Does `work` with the reader of the store. It blocks.
    pub(super) fn read<T>(&self, work: impl FnOnce(&mut Reader) -> T) -> T {
        work(&mut lock(&self.reader))
    }

    /// Reads the data of a recorded run's plots, unless it is kept. Other pages do not wait for it. It blocks.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn read_charts(&self, run: RunId) -> store::Result<()> {
        let (row, workspace) = self.read(|reader| {
            Ok::<_, StoreError>((reader.run_without_charts(run)?, reader.workspace().clone()))
        })?;
        if let Some(row) = row {
            let charts = RunCharts::read(&row, &workspace);
            self.read(|reader| reader.keep_charts(run, charts));
        }
        Ok(())
    }

    /// Watches a view. `None` when too many different views are watched. It blocks.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn watch(&self, view: &View) -> anyhow::Result<Option<watch::Receiver<Arc<Pieces>>>> {
        let now = Arc::new(self.read(|reader| reader.render(view))?);
        let mut watched = lock(&self.watched);
        watched.retain(|_, sender| sender.receiver_count() > 0);
        if let Some(sender) = watched.get(view) {
            return Ok(Some(sender.subscribe()));
        }
        if watched.len() >= MAX_VIEWS {
            return Ok(None);
        }
        let (sender, receiver) = watch::channel(now);
        watched.insert(view.clone(), sender);
        Ok(Some(receiver))
    }

    /// Renders watched views after changes, for ever.
    pub(super) async fn follow(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(PACE);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut version, mut rendered) = (None, Instant::now());
        let mut rest = Duration::ZERO;
        loop {
            ticks.tick().await;
            if !self.is_watched() || rendered.elapsed() < rest {
                continue;
            }
            let hub = Arc::clone(&self);
            let is_due = rendered.elapsed() >= MAX_PAUSE;
            // SQLite waits for the disk, so this runs on a blocking thread.
            let refreshed = tokio::task::spawn_blocking(move || hub.refresh(version, is_due)).await;
            match refreshed {
                Ok(Ok(Some(refreshed))) => {
                    (version, rendered) = (refreshed.version, Instant::now());
                    rest = rest_after(refreshed.cost);
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    tracing::warn!("the live page is not updated: {error:#}");
                }
                Err(error) => tracing::error!("the live page is not updated: {error}"),
            }
        }
    }

    /// Renders every watched view if the store has changed since `seen`, or `is_due`. A failing view does not delay the others.
    fn refresh(&self, seen: Option<i64>, is_due: bool) -> anyhow::Result<Option<Refreshed>> {
        let begun = thread_time();
        let version = self.read(|reader| reader.version())?;
        if seen == Some(version) && !is_due {
            return Ok(None);
        }
        let views: Vec<View> = lock(&self.watched).keys().cloned().collect();
        let mut failed = 0;
        for view in &views {
            if let Err(error) = self.refresh_view(view) {
                // One reason is enough, because all views read the same store.
                if failed == 0 {
                    tracing::warn!("a view of the live page is not updated: {error:#}");
                }
                failed += 1;
            }
        }
        Ok(Some(Refreshed {
            version: (failed == 0).then_some(version),
            cost: thread_time().saturating_sub(begun),
        }))
    }

    /// Renders a watched view, and publishes its changes.
    fn refresh_view(&self, view: &View) -> anyhow::Result<()> {
        if let View::Run(run) = view {
            self.read_charts(*run)?;
        }
        let now = Arc::new(self.read(|reader| reader.render(view))?);
        if let Some(sender) = lock(&self.watched).get(view) {
            sender.send_if_modified(|before| {
                let is_changed = **before != *now;
                if is_changed {
                    *before = now;
                }
                is_changed
            });
        }
        Ok(())
    }

    fn is_watched(&self) -> bool {
        let mut watched = lock(&self.watched);
        watched.retain(|_, sender| sender.receiver_count() > 0);
        !watched.is_empty()
    }
}

/// Returns the pause after a rendering of all views with this processor time.
fn rest_after(cost: Duration) -> Duration {
    (cost * PAUSE_PER_RENDERING).min(MAX_PAUSE)
}

/// Returns the processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Locks a mutex. Its data is replaced as a whole, so a panic elsewhere leaves nothing half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expensive_renderings_are_rare_and_cheap_ones_follow_each_second() {
        assert!(rest_after(Duration::from_millis(40)) < PACE);
        assert_eq!(rest_after(Duration::from_millis(200)), Duration::from_secs(4));
        assert_eq!(rest_after(Duration::from_secs(3)), MAX_PAUSE);
    }
}
