//! Flushes files to disk on its own thread, so that the next batch is written and hashed meanwhile.
//! The thread flushes one list of files at a time and does not know streams.

use std::{
    fs::File,
    io,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

/// A handle on the flush thread. The thread ends when the handle is dropped.
pub(super) struct Flusher {
    jobs: mpsc::Sender<Vec<Arc<File>>>,
    done: mpsc::Receiver<(Vec<io::Result<()>>, Duration)>,
    /// Total time spent in flushes.
    took: Duration,
}

impl Flusher {
    /// Starts the flush thread.
    ///
    /// # Errors
    /// Returns an error when the system cannot start the thread.
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

    /// Starts to flush `files`. [`Self::wait`] returns the results.
    pub(super) fn begin(&self, files: Vec<Arc<File>>) {
        // `wait` reports a thread that has ended.
        let _ = self.jobs.send(files);
    }

    /// Waits for the last started flush and returns one result per file.
    pub(super) fn wait(&mut self, files: usize) -> Vec<io::Result<()>> {
        let Ok((flushed, took)) = self.done.recv() else {
            let gone = || Err(io::Error::other("the flushing thread has ended"));
            return std::iter::repeat_with(gone).take(files).collect();
        };
        self.took += took;
        flushed
    }

    /// Total time spent in flushes since the start.
    pub(super) const fn took(&self) -> Duration {
        self.took
    }
}
