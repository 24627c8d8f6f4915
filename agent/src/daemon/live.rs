//! What the growing files of a live run have gained is flushed before it is sent: what was acknowledged, this disk has too. On a
//! thread of its own, one look at a time and as long as the run is on, since a slow card may take seconds, and heartbeats and
//! commands do not wait for it. Sends nothing.

use std::{
    collections::BTreeMap,
    fs::File,
    future::pending,
    io,
    sync::mpsc as asks,
    thread,
    time::{Duration, Instant},
};

use regatta_types::{RunId, StreamName};
use tokio::sync::mpsc;

use super::{
    link::Link,
    run_dir::{RunDir, Unflushed},
    sealing::OnDisk,
    service::Service,
    window::SteppedAside,
};

/// Time from a look's end to the next.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// Bytes on their way beyond which growing files are not looked at: more would be flushed now and sent much later.
const ENOUGH: u64 = 4 << 20;
/// Files that only grow while LoadGen runs; the others are written at once, at the end.
const GROWING: [&str; 2] = ["mlperf_log_", "run.log"];

/// The growing files of the run that is on.
#[derive(Debug)]
pub(super) struct LiveFiles {
    run: RunId,
    /// The thread ends when this is dropped.
    asks: asks::Sender<()>,
    looks: mpsc::UnboundedReceiver<Look>,
    phase: Phase,
}

/// What a look came to: files that have grown, with the lengths that are on this disk.
type Look = Result<OnDisk, Unflushed>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Until the next look.
    Rests(Instant),
    /// The thread is flushing.
    Looks,
    /// The same, for the last time.
    LooksLast,
}

impl LiveFiles {
    /// Starts the thread, which keeps off LoadGen's processor.
    ///
    /// # Errors
    /// When there can be no thread.
    fn start(run: RunId, dir: RunDir, timing_cpu: Option<usize>) -> io::Result<Self> {
        let (asks, asked) = asks::channel();
        let (tell, looks) = mpsc::unbounded_channel();
        thread::Builder::new().name("live".to_owned()).spawn(move || {
            let _aside = timing_cpu.and_then(SteppedAside::from);
            let mut growing = BTreeMap::new();
            while asked.recv().is_ok() && tell.send(look(&dir, &mut growing)).is_ok() {}
        })?;
        Ok(Self {
            run,
            asks,
            looks,
            phase: Phase::Rests(Instant::now()),
        })
    }

    /// When the next look is due; none while one is under way.
    pub(super) const fn next_look(&self) -> Option<Instant> {
        match self.phase {
            Phase::Rests(until) => Some(until),
            Phase::Looks | Phase::LooksLast => None,
        }
    }
}

/// The next look's result; `None` when the thread is gone.
pub(super) async fn live_news(live: &mut Option<LiveFiles>) -> Option<Look> {
    match live {
        Some(live) => live.looks.recv().await,
        None => pending().await,
    }
}

/// Ends live sending, after the look that is under way: its flush may fail, and then the run has.
pub(super) fn end_live(live: &mut Option<LiveFiles>) {
    match live {
        Some(LiveFiles {
            phase: phase @ (Phase::Looks | Phase::LooksLast),
            ..
        }) => *phase = Phase::LooksLast,
        _ => *live = None,
    }
}

impl<L: Link> Service<L> {
    /// Begins to look at a run's files, if they are to be sent while it is on.
    pub(super) fn begin_live(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id).filter(|run| run.manners.live) else {
            return;
        };
        let live = LiveFiles::start(id, run.dir.clone(), run.manners.timing_cpu);
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

/// Flushes what has grown. Files stay open from the first look on, since the kernel tells of a failed write to those who had the
/// file open. What cannot be opened or listed is told by the sealing.
fn look(dir: &RunDir, growing: &mut BTreeMap<StreamName, (File, u64)>) -> Look {
    let streams = dir.streams().map(|(streams, _)| streams).unwrap_or_default();
    for stream in streams {
        let grows = GROWING.iter().any(|prefix| stream.as_str().starts_with(prefix));
        if grows
            && !growing.contains_key(&stream)
            && let Ok(file) = dir.open(&stream)
        {
            growing.insert(stream, (file, 0));
        }
    }
    let mut on_disk = OnDisk::new();
    for (stream, (file, flushed)) in growing {
        let Ok(length) = file.metadata().map(|metadata| metadata.len()) else {
            continue;
        };
        if length > *flushed {
            file.sync_data().map_err(|source| Unflushed {
                stream: stream.clone(),
                source,
            })?;
            *flushed = length;
            on_disk.push((stream.clone(), length));
        }
    }
    Ok(on_disk)
}
