//! A run's directory: `spec.json`, `job.json`, `outbox.journal` and `files/`. Knows where things lie and how they are
//! written so that they survive a power cut; decides nothing about a run's life.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use regatta_fsutil::atomic_file::{self, AtomicFile};
use regatta_types::{
    RunId, StreamName,
    documents::{DeviceFacts, Document, DocumentError, RunPhase, RunSpec, RunState, StateProof, WindowCost},
};
use serde::{Deserialize, Serialize};

/// Names of directories that are still being made; swept at the daemon's start.
const UNFINISHED: &str = ".new-";

/// Something about a run's directory that did not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunDirError {
    /// The operating system refused.
    #[error("{} cannot be {what}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A document is not what this program, or its coordinator, writes.
    #[error("{} cannot be understood", .path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: DocumentError,
    },
}

impl RunDirError {
    /// Whether the disk had no space.
    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}

/// A file of a run whose bytes may not be on this disk. The kernel tells it once: who hears it must remember it.
#[derive(Debug, thiserror::Error)]
#[error("{stream} cannot be flushed to disk")]
pub(crate) struct Unflushed {
    /// Which.
    pub(crate) stream: StreamName,
    /// Why not.
    #[source]
    pub(crate) source: io::Error,
}

/// `job.json`: what the daemon must remember of a run over its own death.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Schema number of this document.
    pub(crate) schema: u16,
    /// The run's state as it was last made known.
    pub(crate) state: RunState,
    /// Place in the order of arrival.
    pub(crate) arrival: u64,
    /// How the run ended, once it has: sealing it is what is left to do.
    pub(crate) ending: Option<Ending>,
    /// Whether every file is hashed and the evidence written, as far as that could be.
    pub(crate) sealed: bool,
    /// Files that could not be flushed, hashed or written when the run was sealed: while there are any, the run is neither done nor
    /// forgotten, and it is sealed again at the next start.
    #[serde(default)]
    pub(crate) owed: Vec<StreamName>,
    /// Whether the coordinator has released the run: only then may it be removed.
    #[serde(default)]
    pub(crate) released: bool,
    /// Why what was logged may not be on this disk, where a file of the live run could not be flushed.
    #[serde(default)]
    pub(crate) unflushed: Option<String>,
    /// The run process while there is one, so that a daemon that comes back can end it.
    pub(crate) process: Option<ProcessIdentity>,
    /// The device's state before the run.
    pub(crate) before: Option<DeviceFacts>,
    /// What the daemon cost in the timed window.
    pub(crate) window: WindowCost,
    /// The proof of the device's state, as far as it has come.
    #[serde(default)]
    pub(crate) device_state: Option<StateProof>,
}

impl Document for Job {
    const KIND: &'static str = "job";
    const SCHEMA: u16 = 1;
    fn schema(&self) -> u16 {
        self.schema
    }
}

impl Job {
    /// The job of a run that has just arrived.
    pub(crate) fn queued(arrival: u64) -> Self {
        Self {
            schema: Self::SCHEMA,
            state: RunState {
                phase: RunPhase::Queued,
                reason: None,
                revision: 1,
            },
            arrival,
            ending: None,
            sealed: false,
            owed: Vec::new(),
            released: false,
            unflushed: None,
            process: None,
            before: None,
            window: WindowCost::default(),
            device_state: None,
        }
    }
}

/// How a run ended on the device: `draining` when it ended well, else `failed` or `aborted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ending {
    /// The phase that follows once the run is sealed.
    pub(crate) phase: RunPhase,
    /// Why, when it did not end well.
    pub(crate) reason: Option<String>,
}

impl Ending {
    /// The same end with one more reason. A run that has any did not end well.
    pub(crate) fn also(self, why: String) -> Self {
        let phase = if self.phase == RunPhase::Draining {
            RunPhase::Failed
        } else {
            self.phase
        };
        let reason = match self.reason {
            Some(first) => format!("{first}; {why}"),
            None => why,
        };
        Self {
            phase,
            reason: Some(reason),
        }
    }
}

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessIdentity {
    /// Process id, which is also its process group's.
    pub(crate) pid: i32,
    /// Its start in clock ticks since boot.
    pub(crate) start_ticks: u64,
    /// The boot in which it started.
    pub(crate) boot_id: String,
}

/// A run's directory.
#[derive(Debug, Clone)]
pub(crate) struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes the directory of a new run: it appears complete or not at all.
    pub(crate) fn create(runs: &Path, run: RunId, spec: &[u8], job: &Job) -> Result<Self, RunDirError> {
        let unfinished = runs.join(format!("{UNFINISHED}{run}"));
        let finished = runs.join(run.to_string());
        let made = (|| {
            let _ = fs::remove_dir_all(&unfinished);
            // Never into a leftover.
            fs::create_dir(&unfinished)?;
            fs::create_dir(unfinished.join("files"))?;
            AtomicFile::new(&unfinished.join("spec.json"))
                .mode(0o644)
                .write(spec)?;
            AtomicFile::new(&unfinished.join("job.json"))
                .mode(0o644)
                .write(&job_json(job)?)?;
            fs::rename(&unfinished, &finished)?;
            atomic_file::sync_directory(runs)
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

    /// The runs of an earlier daemon, in no order; sweeps up what it did not finish making.
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

    /// Where the spec lies; the run process gets this path.
    pub(crate) fn spec_path(&self) -> PathBuf {
        self.path.join("spec.json")
    }

    /// The run's own view of the scratch directory, where it has assets.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }

    /// Where the run's files lie: each is a stream.
    pub(crate) fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    /// What a run process leaves when it dies while it writes `attempt.json`.
    pub(crate) fn unfinished_attempt(&self) -> PathBuf {
        self.path.join("attempt.json.part")
    }

    /// Where the delivery's journal lies.
    pub(crate) fn journal_path(&self) -> PathBuf {
        self.path.join("outbox.journal")
    }

    /// The exact bytes of the spec.
    pub(crate) fn read_spec(&self) -> Result<Vec<u8>, RunDirError> {
        let path = self.spec_path();
        fs::read(&path).map_err(|source| RunDirError::Io {
            what: "read",
            path,
            source,
        })
    }

    /// The spec.
    pub(crate) fn spec(&self) -> Result<RunSpec, RunDirError> {
        RunSpec::from_json(&self.read_spec()?).map_err(|source| RunDirError::Document {
            path: self.spec_path(),
            source,
        })
    }

    /// The job as it was last written.
    pub(crate) fn read_job(&self) -> Result<Job, RunDirError> {
        let path = self.path.join("job.json");
        let bytes = fs::read(&path).map_err(|source| RunDirError::Io {
            what: "read",
            path: path.clone(),
            source,
        })?;
        Job::from_json(&bytes).map_err(|source| RunDirError::Document { path, source })
    }

    /// Replaces `job.json`, surviving a power cut.
    pub(crate) fn write_job(&self, job: &Job) -> Result<(), RunDirError> {
        let path = self.path.join("job.json");
        job_json(job)
            .map_err(io::Error::from)
            .and_then(|bytes| AtomicFile::new(&path).mode(0o644).write(&bytes))
            .map_err(|source| RunDirError::Io {
                what: "written",
                path,
                source,
            })
    }

    /// The run's streams, sorted by name: regular files under `files/` with a name that may cross the wire. The second
    /// list holds what cannot be delivered, in words.
    pub(crate) fn streams(&self) -> io::Result<(Vec<StreamName>, Vec<String>)> {
        let (mut streams, mut others) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(self.files())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            match name.parse() {
                Ok(stream) if entry.file_type()?.is_file() => streams.push(stream),
                Ok(_) => others.push(format!("`{name}` is not a regular file and was not delivered")),
                // Our own half-written files begin with a dot.
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

    /// Reads a piece of a stream.
    pub(crate) fn read_piece(&self, stream: &StreamName, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let file = self.open(stream)?;
        let mut piece = vec![0; length];
        file.read_exact_at(&mut piece, offset)?;
        Ok(piece)
    }

    /// Removes the run. The directory first takes a name that is swept up at the next start, so that a power cut never leaves half a
    /// run. With that name the run is gone: files below it that cannot be deleted are only logged.
    ///
    /// # Errors
    /// When the directory keeps its name.
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
            tracing::error!("{} is left over of a removed run: {e}", doomed.display());
        }
        Ok(())
    }
}

fn job_json(job: &Job) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(job)?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_directory_appears_whole_and_goes_whole() {
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
