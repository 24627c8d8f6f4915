//! Flushes files and directories to disk on a separate thread, so that the next batch can be written and hashed at the same time. The thread
//! flushes one list at a time and does not know streams.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use regatta_fsutil::{atomic_file::sync_directory, parallel};

/// A handle on the flush thread. The thread ends when the handle is dropped.
pub(super) struct Flusher {
    jobs: mpsc::Sender<FlushJob>,
    done: mpsc::Receiver<(Vec<io::Result<()>>, Duration)>,
    /// Total time spent in flushes.
    took: Duration,
}

/// The streams that are flushed together.
#[derive(Debug, Default)]
pub(super) struct FlushJob {
    pub(super) files: Vec<Arc<File>>,
    /// The directories that have the files' names. A directory that cannot be flushed fails every file.
    pub(super) directories: BTreeSet<PathBuf>,
}

/// One thing to flush.
enum FlushTarget<'a> {
    File(&'a File),
    Directory(&'a Path),
}

impl FlushTarget<'_> {
    fn flush(&self) -> io::Result<()> {
        #[cfg(test)]
        self.tell_the_modelled_disk();
        match self {
            Self::File(file) => file.sync_all(),
            Self::Directory(path) => match sync_directory(path) {
                // It was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                flushed => flushed,
            },
        }
    }

    #[cfg(test)]
    fn tell_the_modelled_disk(&self) {
        use std::os::fd::AsRawFd as _;
        let path = match self {
            Self::File(file) => std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap(),
            Self::Directory(path) => path.to_path_buf(),
        };
        regatta_test_support::modelled_disk::flush(&path);
    }
}

impl FlushJob {
    fn run(&self) -> Vec<io::Result<()>> {
        let files = self.files.iter().map(|file| FlushTarget::File(file));
        let directories = self.directories.iter().map(|path| FlushTarget::Directory(path));
        let all: Vec<FlushTarget<'_>> = files.chain(directories).collect();
        let mut flushed = parallel::for_each_file(&all, FlushTarget::flush);
        let directories = flushed.split_off(self.files.len());
        match directories.into_iter().find_map(Result::err) {
            None => flushed,
            Some(error) => {
                let failed = |_| Err(io::Error::new(error.kind(), error.to_string()));
                flushed.iter().map(failed).collect()
            }
        }
    }
}

/// Flushes directories at once.
pub(super) fn flush_directories(directories: &BTreeSet<PathBuf>) -> io::Result<()> {
    let all: Vec<FlushTarget<'_>> = directories
        .iter()
        .map(|path| FlushTarget::Directory(path))
        .collect();
    parallel::for_each_file(&all, FlushTarget::flush)
        .into_iter()
        .collect()
}

impl Flusher {
    /// Starts the flush thread.
    ///
    /// # Errors
    /// Returns an error when the system cannot start the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, incoming) = mpsc::channel::<FlushJob>();
        let (answers, done) = mpsc::channel();
        thread::Builder::new().name("flush".to_owned()).spawn(move || {
            for job in incoming {
                let begin = Instant::now();
                if answers.send((job.run(), begin.elapsed())).is_err() {
                    return;
                }
            }
        })?;
        let took = Duration::ZERO;
        Ok(Self { jobs, done, took })
    }

    /// Starts to flush. [`Self::wait`] returns the results.
    pub(super) fn begin(&self, job: FlushJob) {
        // `wait` reports a thread that has ended.
        let _ = self.jobs.send(job);
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

    /// Returns the total time spent in flushes since the start.
    pub(super) const fn took(&self) -> Duration {
        self.took
    }
}
