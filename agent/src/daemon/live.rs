//! Live delivery of a run's files: when they are flushed next, and how the result affects the run. `live_files.rs`
//! flushes them.

use std::time::{Duration, Instant};

use regatta_types::RunId;

use super::{
    link::Link,
    live_files::{LiveFiles, Look, Phase},
    service::Service,
};

/// Pause between two flushes.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// Backlog in bytes above which growing files are not flushed, because new data would only be sent much later.
const ENOUGH: u64 = 4 << 20;
impl<L: Link> Service<L> {
    /// Starts live delivery of a run, if its spec requests it.
    pub(super) fn begin_live(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id).filter(|run| run.window_policy.live) else {
            return;
        };
        let live = LiveFiles::start(id, run.dir.clone(), run.window_policy.timing_cpu);
        self.live = live
            .inspect_err(|e| tracing::error!("run {id}: delivered when it has ended: no thread: {e}"))
            .ok();
    }

    /// Asks the thread to flush what the run has logged, when it is due.
    pub(super) fn look_at_live_files(&mut self, now: Instant) {
        let Some(live) = &mut self.live else { return };
        if live.next_look().is_none_or(|at| at > now) {
            return;
        }
        let busy = self
            .runs
            .get(&live.run)
            .is_none_or(|run| run.outbox.backlog() >= ENOUGH);
        live.phase = if !busy && live.asks.send(()).is_ok() {
            Phase::Looks
        } else {
            Phase::Rests(now + BETWEEN_LOOKS)
        };
    }

    /// Handles the result of a flush. A failed flush is the last one, because the kernel might not report the error
    /// again.
    pub(super) fn take_live_news(&mut self, news: Option<Look>) {
        let Some(live) = &mut self.live else { return };
        let is_last = live.phase == Phase::LooksLast || !matches!(news, Some(Ok(_)));
        live.phase = Phase::Rests(Instant::now() + BETWEEN_LOOKS);
        if let Some(run) = self.runs.get_mut(&live.run) {
            match news {
                Some(Ok(on_disk)) => run.open_for_delivery(&on_disk),
                Some(Err(unflushed)) => run.take_unflushed(unflushed),
                None => tracing::error!("run {}: the thread that flushes its files is gone", run.id()),
            }
        }
        if is_last {
            self.live = None;
        }
    }
}
