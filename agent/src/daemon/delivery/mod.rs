//! Delivery: which run's logs may be sent now, at which rate, and when they are sent again. While a run is active, only
//! its own chunks are sent, and only if its spec says `live`. Each run's own delivery state decides which chunk is next.

mod live_files;
mod pace;

use std::{future::pending, time::Instant};

use regatta_types::RunId;

use self::{live_files::LiveFiles, pace::Pace};
use super::runs::{run::Run, run_delivery::StreamMessage, run_dir::Unflushed, sealed::OnDisk};

/// Backlog in bytes above which growing files are not flushed, because new data would only be sent much later.
const FLUSH_BACKLOG: u64 = 4 << 20;

/// The state of delivery that all runs share.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// The active run, whose chunks alone may be sent.
    active: Option<RunId>,
    /// Growing files of the active run, if it is delivered live.
    live: Option<LiveFiles>,
    /// Rate limit for the logs of a live run.
    live_pace: Pace,
    last_acknowledgement: Option<Instant>,
}

/// An event of the thread that flushes a live run's files.
#[derive(Debug)]
pub(crate) enum DeliveryEvent {
    /// These bytes are on disk and may be sent.
    Flushed(RunId, OnDisk),
    /// A flush failed. It was the last one, because the kernel might not report the error again.
    FlushFailed(RunId, Unflushed),
    /// The thread has ended. The rest is delivered when the run has ended.
    FlushingEnded,
}

impl Delivery {
    /// Returns the delivery without an active run.
    pub(crate) fn new(live_bytes_per_second: u64) -> Self {
        Self {
            active: None,
            live: None,
            live_pace: Pace::new(live_bytes_per_second),
            last_acknowledgement: None,
        }
    }

    /// Stops the delivery of other runs. Starts live delivery of this run, if its spec requests it.
    pub(crate) fn begin_run(&mut self, run: &Run) {
        let id = run.id();
        self.active = Some(id);
        let policy = run.window_policy();
        if policy.live {
            self.live = LiveFiles::start(id, run.dir().clone(), policy.timing_cpu)
                .inspect_err(|e| tracing::error!("run {id}: delivered when it has ended: no thread: {e}"))
                .ok();
        }
    }

    /// Stops flushing the active run's files. Flushed bytes are still sent.
    pub(crate) fn end_live(&mut self) {
        self.live = self.live.take().and_then(LiveFiles::end);
    }

    /// Allows the delivery of all runs, because none is active.
    pub(crate) const fn end_run(&mut self) {
        self.active = None;
    }

    /// Returns whether files of a live run may be flushed now. The run must not be sealed before.
    pub(crate) const fn is_flushing(&self) -> bool {
        self.live.is_some()
    }

    /// Records that an acknowledgement arrived.
    pub(crate) const fn note_acknowledgement(&mut self, now: Instant) {
        self.last_acknowledgement = Some(now);
    }

    /// Returns the time of the last acknowledgement.
    pub(crate) const fn last_acknowledgement(&self) -> Option<Instant> {
        self.last_acknowledgement
    }

    /// Returns whether chunks of this run may be sent now.
    fn may_send(&self, run: &Run, now: Instant) -> bool {
        match self.active {
            None => run.may_be_sent(),
            Some(active) => active == run.id() && run.window_policy().live && self.live_pace.is_free(now),
        }
    }

    /// Returns whether there is a message to send.
    pub(crate) fn has_message<'a>(&self, mut runs: impl Iterator<Item = &'a Run>, now: Instant) -> bool {
        runs.any(|run| self.may_send(run, now) && run.delivery().has_message(now))
    }

    /// Returns the next message of the oldest run that has one, and marks it as sent.
    pub(crate) fn next_message<'a>(
        &mut self,
        runs: impl Iterator<Item = &'a mut Run>,
        now: Instant,
    ) -> Option<(RunId, StreamMessage)> {
        let mut permitted = runs.filter(|run| self.may_send(run, now));
        let (run, message) = permitted.find_map(|run| {
            let message = run.delivery_mut().next_message(now)?;
            Some((run.id(), message))
        })?;
        drop(permitted);
        if self.active.is_some() {
            self.live_pace.spend(message.payload.len() as u64, now);
        }
        Some((run, message))
    }

    /// Sends unacknowledged chunks again, because earlier messages may be lost.
    pub(crate) fn restart<'a>(runs: impl Iterator<Item = &'a mut Run>) {
        runs.for_each(|run| run.delivery_mut().restart());
    }

    /// Returns the time at which [`Self::handle_deadline`] must be called. Then an acknowledgement is overdue, the rate limit
    /// permits the next chunk, or files must be flushed.
    pub(crate) fn deadline<'a>(&self, runs: impl Iterator<Item = &'a Run>, now: Instant) -> Option<Instant> {
        let permitted = runs.filter(|run| self.may_send(run, now));
        let acknowledgement = permitted.filter_map(|run| run.delivery().deadline()).min();
        let live = self.live.as_ref();
        let pace = self.live_pace.free_at().filter(|at| live.is_some() && *at > now);
        let flush = live.and_then(LiveFiles::next_flush);
        [acknowledgement, pace, flush].into_iter().flatten().min()
    }

    /// Restarts delivery where acknowledgements are overdue, and flushes a live run's files when it is time.
    pub(crate) fn handle_deadline<'a>(&mut self, runs: impl Iterator<Item = &'a mut Run>, now: Instant) {
        let live_run = self.live.as_ref().map(LiveFiles::run);
        let mut live_backlog = None;
        for run in runs {
            if self.may_send(run, now) {
                run.delivery_mut().handle_deadline(now);
            }
            if live_run == Some(run.id()) {
                live_backlog = Some(run.delivery().backlog());
            }
        }
        if let Some(live) = &mut self.live {
            let may_flush = live_backlog.is_some_and(|backlog| backlog < FLUSH_BACKLOG);
            live.flush_when_due(may_flush, now);
        }
    }

    /// Returns the next event. Waits forever if no run is delivered live. Cancel-safe.
    pub(crate) async fn next(&mut self) -> DeliveryEvent {
        let Some(live) = &mut self.live else {
            return pending().await;
        };
        let (run, flushed) = (live.run(), live.next().await);
        if !matches!(flushed, Some(Ok(_))) || !live.continues(Instant::now()) {
            self.live = None;
        }
        match flushed {
            Some(Ok(on_disk)) => DeliveryEvent::Flushed(run, on_disk),
            Some(Err(error)) => DeliveryEvent::FlushFailed(run, error),
            None => {
                tracing::error!("run {run}: the thread that flushes its files has ended");
                DeliveryEvent::FlushingEnded
            }
        }
    }
}

#[cfg(test)]
mod tests;
