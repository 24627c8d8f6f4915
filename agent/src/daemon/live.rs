//! A live run's files on their way to the coordinator: when the next look at them is due, and what it means for the run. How they are
//! flushed stands in `live_files.rs`.

use std::time::{Duration, Instant};

use regatta_types::RunId;

use super::{
    link::Link,
    live_files::{LiveFiles, Look, Phase},
    service::Service,
};

/// Time from a look's end to the next.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// Bytes on their way beyond which growing files are not looked at: more would be flushed now and sent much later.
const ENOUGH: u64 = 4 << 20;
impl<L: Link> Service<L> {
    /// Begins to look at a run's files, if they are to be sent while it is on.
    pub(super) fn begin_live(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id).filter(|run| run.window_policy.live) else {
            return;
        };
        let live = LiveFiles::start(id, run.dir.clone(), run.window_policy.timing_cpu);
        self.live = live
            .inspect_err(|e| tracing::error!("run {id}: delivered when it has ended: no thread: {e}"))
            .ok();
    }

    /// Has the thread look what the run has logged meanwhile, when it is time.
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

    /// Takes what a look has come to. After a flush that failed there is no other: the next might say nothing of it.
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
