//! Flushing of the files that grow while a live run is on: what was acknowledged, this disk has too. On a thread of its own, one look
//! at a time, since a slow card may take seconds, and heartbeats and commands do not wait for it. Sends nothing, and decides nothing
//! about the run.

use std::{collections::BTreeMap, fs::File, future::pending, io, sync::mpsc as asks, thread, time::Instant};

use regatta_types::{RunId, StreamName};
use tokio::sync::mpsc;

use super::{
    run_dir::{RunDir, Unflushed},
    sealing::OnDisk,
    window::CpuExclusion,
};

/// Files that only grow while LoadGen runs; the others are written at once, at the end.
const GROWING: [&str; 2] = ["mlperf_log_", "run.log"];

/// The growing files of the run that is on.
#[derive(Debug)]
pub(super) struct LiveFiles {
    pub(super) run: RunId,
    /// The thread ends when this is dropped.
    pub(super) asks: asks::Sender<()>,
    pub(super) looks: mpsc::UnboundedReceiver<Look>,
    pub(super) phase: Phase,
}

/// What a look came to: files that have grown, with the lengths that are on this disk.
pub(super) type Look = Result<OnDisk, Unflushed>;

/// What the thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
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
    pub(super) fn start(run: RunId, dir: RunDir, timing_cpu: Option<usize>) -> io::Result<Self> {
        let (asks, asked) = asks::channel();
        let (tell, looks) = mpsc::unbounded_channel();
        thread::Builder::new().name("live".to_owned()).spawn(move || {
            let _aside = timing_cpu.and_then(CpuExclusion::from);
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
