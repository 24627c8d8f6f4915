//! Flushes files to disk on a thread of its own, so that the next batch is written and hashed while this one becomes
//! durable. One lot of files at a time; knows nothing of streams.

use std::{
    fs::File,
    io,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

/// A handle on the flushing thread, which ends with it.
pub(super) struct Flusher {
    jobs: mpsc::Sender<Vec<Arc<File>>>,
    done: mpsc::Receiver<(Vec<io::Result<()>>, Duration)>,
    /// Time that the disk took so far.
    took: Duration,
}

impl Flusher {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, incoming) = mpsc::channel::<Vec<Arc<File>>>();
        let (answers, done) = mpsc::channel();
        thread::Builder::new().name("flush".to_owned()).spawn(move || {
            for files in incoming {
                let begin = Instant::now();
                let flushed = files.iter().map(|file| file.sync_data()).collect();
                if answers.send((flushed, begin.elapsed())).is_err() {
                    return;
                }
            }
        })?;
        let took = Duration::ZERO;
        Ok(Self { jobs, done, took })
    }

    /// Begins to flush; [`Self::wait`] tells how it went.
    pub(super) fn begin(&self, files: Vec<Arc<File>>) {
        // A thread that is gone is noticed by `wait`.
        let _ = self.jobs.send(files);
    }

    /// Waits for the lot that was begun last, and tells of each of its files whether it is on disk.
    pub(super) fn wait(&mut self, files: usize) -> Vec<io::Result<()>> {
        let Ok((flushed, took)) = self.done.recv() else {
            let gone = || Err(io::Error::other("the flushing thread has ended"));
            return std::iter::repeat_with(gone).take(files).collect();
        };
        self.took += took;
        flushed
    }

    /// Time that the disk took since the start.
    pub(super) const fn took(&self) -> Duration {
        self.took
    }
}
