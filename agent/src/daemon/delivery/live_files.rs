//! Flushes the growing files of a live run, so that acknowledged bytes are also on the device's disk. Flushing has its
//! own thread, because a slow card may take seconds, and heartbeats and commands must not wait. This module does not
//! send anything or decide about the run.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    sync::mpsc as requests,
    thread,
    time::{Duration, Instant},
};

use regatta_types::{RunId, StreamName};
use tokio::sync::mpsc;

use crate::daemon::{
    cpu_exclusion::CpuExclusion,
    runs::{
        run_dir::{RunDir, Unflushed},
        sealed::OnDisk,
    },
};

/// Pause between two flushes.
const FLUSH_PAUSE: Duration = Duration::from_millis(250);
/// Prefixes of the files that only grow while LoadGen runs. The other files are written at the end.
const GROWING: [&str; 2] = ["mlperf_log_", "run.log"];

/// The growing files of the active run.
#[derive(Debug)]
pub(super) struct LiveFiles {
    run: RunId,
    /// Requests a flush. The thread ends when this sender is dropped.
    requests: requests::Sender<()>,
    results: mpsc::UnboundedReceiver<FlushResult>,
    state: FlushState,
}

/// The result of a flush: the files that have grown, with their flushed lengths.
pub(super) type FlushResult = Result<OnDisk, Unflushed>;

/// The state of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlushState {
    /// Idle until the next flush at this time.
    IdleUntil(Instant),
    /// A flush is in progress.
    Flushing,
    /// The last flush is in progress.
    FlushingLast,
}

impl LiveFiles {
    /// Starts the thread, which does not run on LoadGen's processor.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(run: RunId, dir: RunDir, timing_cpu: Option<usize>) -> io::Result<Self> {
        let (requests, requested) = requests::channel();
        let (report, results) = mpsc::unbounded_channel();
        thread::Builder::new().name("live".to_owned()).spawn(move || {
            let _cpu_exclusion = timing_cpu.and_then(CpuExclusion::from);
            let mut growing = BTreeMap::new();
            while requested.recv().is_ok() && report.send(flush(&dir, &mut growing)).is_ok() {}
        })?;
        Ok(Self {
            run,
            requests,
            results,
            state: FlushState::IdleUntil(Instant::now()),
        })
    }

    pub(super) const fn run(&self) -> RunId {
        self.run
    }

    /// Returns the time of the next flush. Returns `None` while one is in progress.
    pub(super) const fn next_flush(&self) -> Option<Instant> {
        match self.state {
            FlushState::IdleUntil(until) => Some(until),
            FlushState::Flushing | FlushState::FlushingLast => None,
        }
    }

    /// Requests a flush when it is due. Without permission, the next one is due after a pause.
    pub(super) fn flush_when_due(&mut self, may_flush: bool, now: Instant) {
        if self.next_flush().is_none_or(|at| at > now) {
            return;
        }
        self.state = if may_flush && self.requests.send(()).is_ok() {
            FlushState::Flushing
        } else {
            FlushState::IdleUntil(now + FLUSH_PAUSE)
        };
    }

    /// Returns the result of the next flush. Returns `None` if the thread has ended. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<FlushResult> {
        self.results.recv().await
    }

    /// Schedules the next flush after a successful one. Returns `false` if that was the last one.
    pub(super) fn continues(&mut self, now: Instant) -> bool {
        let was_last = self.state == FlushState::FlushingLast;
        self.state = FlushState::IdleUntil(now + FLUSH_PAUSE);
        !was_last
    }

    /// Ends live delivery after the flush that is in progress, if any. If that flush fails, the run fails.
    pub(super) fn end(mut self) -> Option<Self> {
        if self.next_flush().is_some() {
            return None;
        }
        self.state = FlushState::FlushingLast;
        Some(self)
    }
}

/// Flushes the files that have grown. Files stay open from the first flush, because the kernel reports write errors
/// only to open file descriptors. Sealing reports files that cannot be opened or listed.
fn flush(dir: &RunDir, growing: &mut BTreeMap<StreamName, (File, u64)>) -> FlushResult {
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
