//! Flushes the growing files of a live run, so that acknowledged bytes are also on the device's disk. Flushing has its
//! own thread, because a slow card may take seconds, and heartbeats and commands must not wait. This module does not
//! send anything or decide about the run.

use std::{collections::BTreeMap, fs::File, future::pending, io, sync::mpsc as asks, thread, time::Instant};

use regatta_types::{RunId, StreamName};
use tokio::sync::mpsc;

use super::{
    run_dir::{RunDir, Unflushed},
    sealing::OnDisk,
    window::CpuExclusion,
};

/// Prefixes of the files that only grow while LoadGen runs. The other files are written at the end.
const GROWING: [&str; 2] = ["mlperf_log_", "run.log"];

/// The growing files of the active run.
#[derive(Debug)]
pub(super) struct LiveFiles {
    pub(super) run: RunId,
    /// Requests a flush. The thread ends when this sender is dropped.
    pub(super) asks: asks::Sender<()>,
    pub(super) looks: mpsc::UnboundedReceiver<Look>,
    pub(super) phase: Phase,
}

/// The result of a flush: the files that have grown, with their flushed lengths.
pub(super) type Look = Result<OnDisk, Unflushed>;

/// The state of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Idle until the next flush at this time.
    Rests(Instant),
    /// A flush is in progress.
    Looks,
    /// The last flush is in progress.
    LooksLast,
}

impl LiveFiles {
    /// Starts the thread, which does not run on LoadGen's processor.
    ///
    /// # Errors
    /// When the thread cannot be started.
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

    /// Returns the time of the next flush. Returns `None` while one is in progress.
    pub(super) const fn next_look(&self) -> Option<Instant> {
        match self.phase {
            Phase::Rests(until) => Some(until),
            Phase::Looks | Phase::LooksLast => None,
        }
    }
}

/// Returns the result of the next flush. Returns `None` if the thread has ended.
pub(super) async fn live_news(live: &mut Option<LiveFiles>) -> Option<Look> {
    match live {
        Some(live) => live.looks.recv().await,
        None => pending().await,
    }
}

/// Ends live delivery after the flush that is in progress. If that flush fails, the run fails.
pub(super) fn end_live(live: &mut Option<LiveFiles>) {
    match live {
        Some(LiveFiles {
            phase: phase @ (Phase::Looks | Phase::LooksLast),
            ..
        }) => *phase = Phase::LooksLast,
        _ => *live = None,
    }
}

/// Flushes the files that have grown. Files stay open from the first flush, because the kernel reports write errors
/// only to open file descriptors. Sealing reports files that cannot be opened or listed.
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
