//! A workspace: the directory with one coordinator's configuration, store and runs.
//!
//! ```text
//! regatta.toml            configuration
//! regatta.db              the store (SQLite), unless the configuration names a PostgreSQL database
//! regatta.lock            locked by the daemon that serves the workspace; contains its process id
//! serve.log               output of the daemon in the background; serve.log.1 has the older output
//! judging/RUN             the runs that are being judged now
//! upgrade.lock            held by a command that upgrades devices
//! keys/                   the lab's keys (`keys`), for their owner only
//! mosquitto/              configuration for a mosquitto, where `regatta init --broker mosquitto` wrote one
//! configs/benchmarks/     the user's own benchmark files; they win over the built-in ones
//! configs/rounds/         likewise
//! configs/systems/        likewise
//! scratch/                data and models for accuracy, unless configured or MLPERF_SCRATCH_PATH says elsewhere
//! assets/                 what devices get from here, by content (`assets`)
//! packages/               agent packages from the user, for `regatta device deploy`
//! shims/                  TensorRT shims that were compiled for boards, and packages that contain them
//! runs/<id>/spec.json     what was asked for, as it was sent
//! runs/<id>/partial/      streams on their way
//! runs/<id>/files/        streams that are whole and have the device's SHA-256
//! runs/<id>/audit/TESTxx/ an audit's verdict files
//! runs/<id>/record.json   the coordinator's record
//! runs/<id>/device.pub    the public key of its device
//! ```
//!
//! This module has the paths and the configuration. It reads no run.

mod config;
mod held_directory;
mod host_problem;
mod lock;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{DatabaseAddress, Store, StoreError};
pub use config::{BrokerChoice, Config, DEFAULT_PAGE, NewConfig, PageChoice, is_host, kept_free_bytes};
use held_directory::HeldDirectory;
pub use host_problem::is_known_only_here;
pub use lock::{Lock, LockError};
use regatta_fsutil::{atomic_file::AtomicFile, regular_file};
use regatta_types::{ErrorKind, RunId, StreamName, documents::document_name};

/// The name of the configuration file. A directory with this file is a workspace.
pub const CONFIG_FILE: &str = "regatta.toml";

/// The directory of the lab's keys.
pub const KEYS: &str = "keys";

/// An error of a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The directory has no configuration file.
    #[error("{} is not a Regatta workspace: it has no {CONFIG_FILE}", .0.display())]
    NotOne(PathBuf),
    /// The directory already is a workspace.
    #[error("{} is a Regatta workspace already", .0.display())]
    Exists(PathBuf),
    /// The configuration file is invalid.
    #[error("{} is invalid", .path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        #[source]
        source: config::ConfigError,
    },
    /// A file or directory cannot be read or created.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl WorkspaceError {
    /// Returns who has to act.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NotOne(_) | Self::Config { .. } | Self::Exists(_) => ErrorKind::Usage,
            Self::Io { .. } => ErrorKind::Internal,
        }
    }
}

/// An opened workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    directory: Arc<HeldDirectory>,
    config: Config,
}

impl Workspace {
    /// Creates a workspace in a directory, and the directory if it is missing.
    ///
    /// # Errors
    /// Returns [`WorkspaceError::Exists`] when the directory already is a workspace, and an error when a file cannot be written.
    pub fn create(root: &Path, config_text: &str) -> Result<Self, WorkspaceError> {
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
    /// Returns [`WorkspaceError`] when the directory is not a workspace or its configuration is invalid.
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let path = root.join(CONFIG_FILE);
        let text = match regular_file::read_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(WorkspaceError::NotOne(root.to_owned()));
            }
            Err(source) => return Err(WorkspaceError::Io { path, source }),
        };
        let config = Config::from_toml(&text).map_err(|source| WorkspaceError::Config { path, source })?;
        let directory = HeldDirectory::open(root).map_err(|source| WorkspaceError::Io {
            path: root.to_owned(),
            source,
        })?;
        let workspace = Self {
            root: root.to_owned(),
            directory: Arc::new(directory),
            config,
        };
        let runs = workspace.runs();
        fs::create_dir_all(&runs).map_err(|source| WorkspaceError::Io { path: runs, source })?;
        Ok(workspace)
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Checks that the path still leads to the directory that was opened. A program that runs for long checks it before it writes.
    ///
    /// # Errors
    /// Returns [`WorkspaceMoved`] when the directory was renamed, replaced or deleted.
    pub fn expect_in_place(&self) -> Result<(), WorkspaceMoved> {
        if self.directory.is_at(&self.root) {
            return Ok(());
        }
        Err(WorkspaceMoved {
            from: self.root.clone(),
            to: self.directory.present_path(),
        })
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the file of a database in the workspace.
    pub fn database_file(&self) -> PathBuf {
        self.root.join("regatta.db")
    }

    /// Returns the place of the store's database.
    pub fn database(&self) -> DatabaseAddress {
        match &self.config.database {
            Some(server) => DatabaseAddress::Server(Box::new(server.clone().in_directory(&self.root))),
            None => {
                let path = self.database_file();
                #[cfg(any(test, feature = "fixtures"))]
                if let Some(server) = crate::database::test_server::server_instead_of(&path) {
                    return server;
                }
                DatabaseAddress::File(path)
            }
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    /// Returns an error when the database cannot be opened or a newer program wrote it.
    pub fn store(&self) -> Result<Store, StoreError> {
        Store::connect(&self.database())
    }

    /// Returns the path of the log of a daemon in the background.
    pub fn serve_log(&self) -> PathBuf {
        self.root.join("serve.log")
    }

    /// Returns the directory of the lab's keys.
    pub fn keys(&self) -> PathBuf {
        self.root.join(KEYS)
    }

    /// Returns the directory of the lab's mosquitto configuration.
    pub fn mosquitto(&self) -> PathBuf {
        self.root.join("mosquitto")
    }

    /// Returns the directory of the user's own configuration files: `benchmarks`, `rounds` and `systems` in it.
    pub fn configs(&self) -> PathBuf {
        self.root.join("configs")
    }

    /// Returns the directory of data and models: the configured one, otherwise `MLPERF_SCRATCH_PATH`, otherwise `scratch/`.
    pub fn scratch(&self) -> PathBuf {
        match (&self.config.scratch, std::env::var_os("MLPERF_SCRATCH_PATH")) {
            (Some(configured), _) => self.root.join(configured),
            (None, Some(set)) if !set.is_empty() => PathBuf::from(set),
            _ => self.root.join("scratch"),
        }
    }

    /// Returns the directory of one power session.
    pub fn power_session(&self, id: &str) -> PathBuf {
        self.root.join("power").join(id)
    }

    /// Returns the free space that the workspace's disk keeps, in bytes.
    pub fn min_free_bytes(&self) -> u64 {
        // A file system that cannot report its size has no default.
        let total =
            rustix::fs::statvfs(&self.root).map_or(0, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        kept_free_bytes(self.config.min_free_bytes, total)
    }

    /// Returns whether the disk has less free space than it keeps, so that no logs are accepted.
    pub fn is_disk_full(&self) -> bool {
        rustix::fs::statvfs(&self.root)
            .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < self.min_free_bytes())
    }

    /// Returns the directory of all runs.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Returns the directory of one run.
    pub fn run(&self, run: RunId) -> RunDir {
        RunDir(self.runs().join(run.to_string()))
    }

    /// Returns the directory of the notes about runs that are being judged, a file per run.
    pub fn judging(&self) -> PathBuf {
        self.root.join("judging")
    }

    /// Locks the workspace for a daemon.
    ///
    /// # Errors
    /// Returns [`LockError`] when another daemon holds the lock.
    pub fn lock(&self) -> Result<Lock, LockError> {
        Lock::take(&self.root.join("regatta.lock"))
    }

    /// Locks the workspace for a command that upgrades devices.
    ///
    /// # Errors
    /// Returns [`LockError`] when another command holds the lock.
    pub fn lock_upgrades(&self) -> Result<Lock, LockError> {
        Lock::take(&self.root.join("upgrade.lock"))
    }

    /// Returns whether a command upgrades devices now.
    pub fn is_upgrading(&self) -> bool {
        lock::is_held(&self.root.join("upgrade.lock"))
    }

    /// Returns the process that serves this workspace. `None` when there is none, or when it is unknown.
    pub fn serving_process(&self) -> Option<u32> {
        lock::holder(&self.root.join("regatta.lock"))
    }

    /// Returns whether a daemon serves this workspace now.
    pub fn is_served(&self) -> bool {
        lock::is_held(&self.root.join("regatta.lock"))
    }
}

/// The workspace is no longer at the path where it was opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the workspace {} was {}", .from.display(),
    .to.as_ref().map_or_else(|| "deleted or replaced".to_owned(), |to| format!("moved to {}", to.display()))
)]
pub struct WorkspaceMoved {
    /// The path where it was opened.
    pub from: PathBuf,
    /// The path where it is now. `None` when it was deleted or the system does not tell.
    pub to: Option<PathBuf>,
}

/// The directory of one run.
#[derive(Debug, Clone)]
pub struct RunDir(PathBuf);

impl From<PathBuf> for RunDir {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl RunDir {
    /// Makes the run's directory. The directory of all runs must exist: making it again would make a second workspace where this one was
    /// before somebody moved it.
    pub fn make(&self) -> io::Result<()> {
        make_directory(&self.0)
    }

    /// Makes the directory of incomplete streams, as [`Self::make`] does.
    pub fn make_partial(&self) -> io::Result<()> {
        self.make()?;
        make_directory(&self.partial())
    }

    /// Makes the directory of complete streams, as [`Self::make`] does.
    pub fn make_files(&self) -> io::Result<()> {
        self.make()?;
        make_directory(&self.files())
    }

    /// Returns the directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the run's spec as it was sent.
    pub fn spec(&self) -> PathBuf {
        self.0.join(document_name::SPEC)
    }

    /// Returns the coordinator's record.
    pub fn record(&self) -> PathBuf {
        self.0.join(document_name::RECORD)
    }

    /// Returns the submission trees that were made with it.
    pub fn staged(&self) -> PathBuf {
        self.0.join("staged.json")
    }

    /// Returns the public key of its device, for verifying the run without a store.
    pub fn device_key(&self) -> PathBuf {
        self.0.join(document_name::DEVICE_KEY)
    }

    /// Returns the directory of complete streams.
    pub fn files(&self) -> PathBuf {
        self.0.join("files")
    }

    /// Returns the directory of audits' verdict files, with a subdirectory per audit as in a submission.
    pub fn audit(&self) -> PathBuf {
        self.0.join("audit")
    }

    /// Returns the directory of incomplete streams.
    pub fn partial(&self) -> PathBuf {
        self.0.join("partial")
    }

    /// Returns the path of a complete stream. The type of the name ensures that it is a safe path component.
    pub fn file(&self, name: &StreamName) -> PathBuf {
        self.files().join(name.as_str())
    }

    /// Returns the path of an incomplete stream.
    pub fn partial_file(&self, name: &StreamName) -> PathBuf {
        self.partial().join(name.as_str())
    }

    /// Removes a stream's file, complete or not. A file that remains is not part of the run's record.
    pub fn remove_stream(&self, name: &StreamName) {
        for path in [self.partial_file(name), self.file(name)] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    tracing::error!("cannot remove {}: {error}", path.display());
                }
                _ => {}
            }
        }
    }
}

/// Makes a directory in an existing one, unless it exists.
pub fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}
