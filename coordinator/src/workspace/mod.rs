//! A workspace: the directory in which one coordinator keeps its configuration, store and runs.
//!
//! ```text
//! regatta.toml            configuration
//! regatta.db              the store (SQLite)
//! regatta.lock            held by the daemon that serves the workspace
//! keys/                   the lab's keys (`crate::keys`), for their owner only
//! mosquitto/              configuration for a mosquitto, where `regatta init --broker mosquitto` wrote one
//! configs/benchmarks/     the user's own benchmark files; they win over the built-in ones
//! configs/rounds/         likewise
//! configs/systems/        likewise
//! scratch/                data and models for accuracy, unless configured or MLPERF_SCRATCH_PATH says elsewhere
//! assets/                 what devices get from here, by content (`crate::assets`)
//! runs/<id>/spec.json     what was asked for, as it was sent
//! runs/<id>/partial/      streams on their way
//! runs/<id>/files/        streams that are whole and have the device's SHA-256
//! runs/<id>/audit/TESTxx/ an audit's verdict files
//! runs/<id>/record.json   the coordinator's record
//! runs/<id>/device.pub    the public key of its device
//! ```
//!
//! This module knows paths and configuration; it reads no run.

mod config;
mod lock;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

pub(crate) use config::{BrokerChoice, Config, NewConfig, is_host};
pub(crate) use lock::{Lock, LockError};
use regatta_fsutil::{atomic_file::AtomicFile, regular_file};
use regatta_types::{RunId, StreamName, documents::document_name};

/// The configuration file's name; its presence makes a directory a workspace.
pub(crate) const CONFIG_FILE: &str = "regatta.toml";

/// The directory of the lab's keys.
pub(crate) const KEYS: &str = "keys";

/// Why a workspace cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    /// No configuration file there.
    #[error("{} is not a Regatta workspace: it holds no {CONFIG_FILE}", .0.display())]
    NotOne(PathBuf),
    /// There is one already.
    #[error("{} is a Regatta workspace already", .0.display())]
    Exists(PathBuf),
    /// The configuration file does not read.
    #[error("{} cannot be understood", .path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: config::ConfigError,
    },
    /// A file or directory cannot be read or made.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// An opened workspace.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    config: Config,
}

impl Workspace {
    /// Makes a workspace in a directory, which is made if it is missing.
    ///
    /// # Errors
    /// [`WorkspaceError::Exists`] when there is one already.
    pub(crate) fn create(root: &Path, config_text: &str) -> Result<Self, WorkspaceError> {
        let path = root.join(CONFIG_FILE);
        if path.exists() {
            return Err(WorkspaceError::Exists(root.to_owned()));
        }
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| WorkspaceError::Io { path, source }
        };
        fs::create_dir_all(root).map_err(io(root))?;
        AtomicFile::new(&path)
            .write(config_text.as_bytes())
            .map_err(io(&path))?;
        Self::open(root)
    }

    /// Opens an existing workspace.
    ///
    /// # Errors
    /// [`WorkspaceError`] when the directory is none or its configuration does not read.
    pub(crate) fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let path = root.join(CONFIG_FILE);
        let text = match regular_file::read_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(WorkspaceError::NotOne(root.to_owned()));
            }
            Err(source) => return Err(WorkspaceError::Io { path, source }),
        };
        let config = Config::from_toml(&text).map_err(|source| WorkspaceError::Config { path, source })?;
        let workspace = Self {
            root: root.to_owned(),
            config,
        };
        let runs = workspace.runs();
        fs::create_dir_all(&runs).map_err(|source| WorkspaceError::Io { path: runs, source })?;
        Ok(workspace)
    }

    /// The directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The configuration.
    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// The store's database.
    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("regatta.db")
    }

    /// The lab's keys.
    pub(crate) fn keys(&self) -> PathBuf {
        self.root.join(KEYS)
    }

    /// Where the files of a mosquitto of this lab lie.
    pub(crate) fn mosquitto(&self) -> PathBuf {
        self.root.join("mosquitto")
    }

    /// The user's own files of one kind (`benchmarks`, `rounds`).
    pub(crate) fn configs(&self, kind: &str) -> PathBuf {
        self.root.join("configs").join(kind)
    }

    /// Where data and models for accuracy lie: the configuration, else `MLPERF_SCRATCH_PATH`, else `scratch/`.
    pub(crate) fn scratch(&self) -> PathBuf {
        match (&self.config.scratch, std::env::var_os("MLPERF_SCRATCH_PATH")) {
            (Some(configured), _) => self.root.join(configured),
            (None, Some(set)) if !set.is_empty() => PathBuf::from(set),
            _ => self.root.join("scratch"),
        }
    }

    /// All runs.
    pub(crate) fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// One run's places.
    pub(crate) fn run(&self, run: RunId) -> RunDir {
        RunDir(self.runs().join(run.to_string()))
    }

    /// Takes the workspace for a daemon.
    ///
    /// # Errors
    /// [`LockError`] when another daemon holds it.
    pub(crate) fn lock(&self) -> Result<Lock, LockError> {
        Lock::take(&self.root.join("regatta.lock"))
    }

    /// Whether a daemon serves this workspace now.
    pub(crate) fn is_served(&self) -> bool {
        lock::is_held(&self.root.join("regatta.lock"))
    }
}

/// The directory of one run.
#[derive(Debug, Clone)]
pub(crate) struct RunDir(PathBuf);

impl RunDir {
    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What was asked for, as sent.
    pub(crate) fn spec(&self) -> PathBuf {
        self.0.join(document_name::SPEC)
    }

    /// The coordinator's record.
    pub(crate) fn record(&self) -> PathBuf {
        self.0.join(document_name::RECORD)
    }

    /// The public key of its device, so that the run can be verified without a store.
    pub(crate) fn device_key(&self) -> PathBuf {
        self.0.join(document_name::DEVICE_KEY)
    }

    /// Whole streams.
    pub(crate) fn files(&self) -> PathBuf {
        self.0.join("files")
    }

    /// An audit's verdict files, below a directory of the audit's name, as a submission wants them.
    pub(crate) fn audit(&self) -> PathBuf {
        self.0.join("audit")
    }

    /// Streams on their way.
    pub(crate) fn partial(&self) -> PathBuf {
        self.0.join("partial")
    }

    /// One whole stream. A stream's name is safe as a path component by its type.
    pub(crate) fn file(&self, name: &StreamName) -> PathBuf {
        self.files().join(name.as_str())
    }

    /// One stream on its way.
    pub(crate) fn partial_file(&self, name: &StreamName) -> PathBuf {
        self.partial().join(name.as_str())
    }
}
