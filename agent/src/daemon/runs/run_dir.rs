//! The directory of a run: `spec.json`, `job.json`, `outbox.journal` and `files/`. This module knows the paths and
//! writes the files so that they survive a power cut. It does not decide about the run's state.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use regatta_fsutil::atomic_file::{self, AtomicFile};
use regatta_types::{
    RunId, StreamName,
    assets::Assets,
    documents::{Document as _, DocumentError, RunSpec, end_reason},
};

use super::job::Job;
use crate::run_process::run_output::STOP_SERVER;

/// Prefix of incomplete run directories. The daemon removes them when it starts.
const UNFINISHED: &str = ".new-";

/// An error in accessing a run's directory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunDirError {
    /// A file operation failed.
    #[error("{} cannot be {what}", .path.display())]
    Io {
        /// The operation that failed, as a participle for the message.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// A document does not parse.
    #[error("{} is invalid", .path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// The parse error.
        #[source]
        source: DocumentError,
    },
}

impl RunDirError {
    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}

/// A flush of one of the run's files failed, so its bytes may not be on disk. The kernel reports such an error once, so
/// the caller must record it.
#[derive(Debug, thiserror::Error)]
#[error("{stream} {}", end_reason::UNFLUSHED)]
pub(crate) struct Unflushed {
    /// The file.
    pub(crate) stream: StreamName,
    /// The operating system's error.
    #[source]
    pub(crate) source: io::Error,
}

/// A run's directory.
#[derive(Debug, Clone)]
pub(crate) struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Creates the directory of a new run atomically: after a power cut it is complete or missing.
    pub(crate) fn create(runs: &Path, run: RunId, spec: &[u8], job: &Job) -> Result<Self, RunDirError> {
        let unfinished = runs.join(format!("{UNFINISHED}{run}"));
        let finished = runs.join(run.to_string());
        let made = (|| {
            let _ = fs::remove_dir_all(&unfinished);
            // `create_dir` fails on a leftover, so old files never become part of the run.
            fs::create_dir(&unfinished)?;
            fs::create_dir(unfinished.join("files"))?;
            write_flushed(&unfinished.join("spec.json"), spec)?;
            write_flushed(&unfinished.join("job.json"), &job.to_json()?)?;
            sync_directory(&unfinished)?;
            fs::rename(&unfinished, &finished)?;
            sync_directory(runs)
        })();
        if made.is_err() {
            let _ = fs::remove_dir_all(&unfinished);
        }
        made.map_err(|source| RunDirError::Io {
            what: "written",
            path: finished.clone(),
            source,
        })?;
        Ok(Self { path: finished })
    }

    /// Returns the runs of an earlier daemon in no particular order. Removes incomplete directories.
    pub(crate) fn all(runs: &Path) -> io::Result<Vec<(RunId, Self)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(runs)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(UNFINISHED) {
                if let Err(e) = fs::remove_dir_all(entry.path()) {
                    tracing::error!("{} cannot be removed: {e}", entry.path().display());
                }
            } else if let Ok(run) = name.parse() {
                found.push((run, Self { path: entry.path() }));
            }
        }
        Ok(found)
    }

    /// Returns the path of the spec, which the run process receives.
    pub(crate) fn spec_path(&self) -> PathBuf {
        self.path.join("spec.json")
    }

    /// Returns the path of the run's scratch directory, which exists only if the run has assets.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }

    /// Returns the directory of the run's files. Each file is a stream.
    pub(crate) fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    /// Returns the temporary file that remains when a run process dies while it writes `attempt.json`.
    pub(crate) fn unfinished_attempt(&self) -> PathBuf {
        self.path.join("attempt.json.part")
    }

    /// Returns the path of the delivery journal.
    pub(crate) fn journal_path(&self) -> PathBuf {
        self.path.join("outbox.journal")
    }

    /// Asks the run process to stop its model server. The file need not survive a power cut: the run has failed then.
    pub(crate) fn request_server_stop(&self) -> Result<(), RunDirError> {
        let path = self.path.join(STOP_SERVER);
        fs::write(&path, b"").map_err(|source| RunDirError::Io {
            what: "written",
            path,
            source,
        })
    }

    /// Reads the exact bytes of the spec.
    pub(crate) fn read_spec(&self) -> Result<Vec<u8>, RunDirError> {
        let path = self.spec_path();
        fs::read(&path).map_err(|source| RunDirError::Io {
            what: "read",
            path,
            source,
        })
    }

    /// Reads and parses the spec.
    pub(crate) fn spec(&self) -> Result<RunSpec, RunDirError> {
        RunSpec::from_json(&self.read_spec()?).map_err(|source| RunDirError::Document {
            path: self.spec_path(),
            source,
        })
    }

    /// Reads the assets that the run's spec names, if any.
    ///
    /// # Errors
    /// When the spec cannot be read.
    pub(crate) fn assets(&self) -> Result<Option<Assets>, RunDirError> {
        Ok(self.spec()?.assets.filter(|assets| !assets.needed.is_empty()))
    }

    pub(crate) fn read_job(&self) -> Result<Job, RunDirError> {
        let path = self.path.join("job.json");
        let bytes = fs::read(&path).map_err(|source| RunDirError::Io {
            what: "read",
            path: path.clone(),
            source,
        })?;
        Job::from_json(&bytes).map_err(|source| RunDirError::Document { path, source })
    }

    /// Replaces `job.json` atomically and durably.
    pub(crate) fn write_job(&self, job: &Job) -> Result<(), RunDirError> {
        let path = self.path.join("job.json");
        job.to_json()
            .map_err(io::Error::from)
            .and_then(|bytes| AtomicFile::new(&path).mode(0o644).write(&bytes))
            .inspect(|()| {
                tell_the_modelled_disk(&path);
                tell_the_modelled_disk(&self.path);
            })
            .map_err(|source| RunDirError::Io {
                what: "written",
                path,
                source,
            })
    }

    /// Returns the run's streams, sorted by name: the regular files under `files/` with a valid stream name. The second
    /// list describes the files that cannot be delivered.
    pub(crate) fn streams(&self) -> io::Result<(Vec<StreamName>, Vec<String>)> {
        let (mut streams, mut others) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(self.files())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            match name.parse() {
                Ok(stream) if entry.file_type()?.is_file() => streams.push(stream),
                Ok(_) => others.push(format!("`{name}` is not a regular file and was not delivered")),
                // The agent's own temporary files begin with a dot.
                Err(_) if name.starts_with('.') => {}
                Err(e) => others.push(format!("a file was not delivered: {e}")),
            }
        }
        streams.sort();
        others.sort();
        Ok((streams, others))
    }

    /// Opens a stream for reading.
    pub(crate) fn open(&self, stream: &StreamName) -> io::Result<File> {
        File::open(self.files().join(stream.as_str()))
    }

    /// Reads `length` bytes of a stream from `offset`.
    pub(crate) fn read_piece(&self, stream: &StreamName, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let file = self.open(stream)?;
        let mut piece = vec![0; length];
        file.read_exact_at(&mut piece, offset)?;
        Ok(piece)
    }

    /// Removes the run. The directory is first renamed to a name that the next start removes, so a power cut never
    /// leaves a partial run. After the rename the run is gone: files that cannot be deleted are only logged.
    ///
    /// # Errors
    /// When the directory cannot be renamed.
    pub(crate) fn remove(&self) -> Result<(), RunDirError> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let doomed = self.path.with_file_name(format!("{UNFINISHED}{name}"));
        let _ = fs::remove_dir_all(&doomed);
        fs::rename(&self.path, &doomed).map_err(|source| RunDirError::Io {
            what: "removed",
            path: self.path.clone(),
            source,
        })?;
        if let Err(e) = fs::remove_dir_all(&doomed) {
            tracing::error!("{} remains of a removed run: {e}", doomed.display());
        }
        Ok(())
    }
}

/// Writes a new file, whose directory the caller flushes.
fn write_flushed(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)?;
    file.write_all(bytes)?;
    tell_the_modelled_disk(path);
    file.sync_all()
}

fn sync_directory(path: &Path) -> io::Result<()> {
    tell_the_modelled_disk(path);
    atomic_file::sync_directory(path)
}

/// Reports that a file or directory is flushed, to tests with power cuts.
pub(super) fn tell_the_modelled_disk(path: &Path) {
    #[cfg(test)]
    regatta_test_support::modelled_disk::flush(path);
    #[cfg(not(test))]
    let _ = path;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_directory_is_created_and_removed_atomically() {
        let runs = tempfile::tempdir().unwrap();
        let run = RunId::now();
        let dir = RunDir::create(runs.path(), run, b"{ \"spec\": 1 }", &Job::queued(7)).unwrap();
        fs::create_dir(runs.path().join(".new-leftover")).unwrap();
        fs::create_dir(runs.path().join("lost+found")).unwrap();
        let all = RunDir::all(runs.path()).unwrap();
        assert_eq!(all.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [run]);
        assert!(!runs.path().join(".new-leftover").exists());
        assert_eq!(dir.read_spec().unwrap(), b"{ \"spec\": 1 }");
        assert_eq!(dir.read_job().unwrap(), Job::queued(7));
        dir.remove().unwrap();
        assert!(RunDir::all(runs.path()).unwrap().is_empty());
    }

    #[test]
    fn streams_are_regular_files_with_safe_names() {
        let runs = tempfile::tempdir().unwrap();
        let dir = RunDir::create(runs.path(), RunId::now(), b"{}", &Job::queued(1)).unwrap();
        for name in [
            "run.log",
            "mlperf_log_summary.txt",
            "two words.txt",
            ".evidence.json.new",
        ] {
            fs::write(dir.files().join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", dir.files().join("link.txt")).unwrap();
        let (streams, others) = dir.streams().unwrap();
        assert_eq!(
            streams.iter().map(StreamName::as_str).collect::<Vec<_>>(),
            ["mlperf_log_summary.txt", "run.log"]
        );
        assert_eq!(others.len(), 2, "{others:?}");
    }
}
