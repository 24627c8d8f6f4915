//! The errors of endpoints runs.

use std::{io, path::PathBuf};

use regatta_types::ErrorKind;

/// The error when a run of the endpoints harness cannot be prepared, made or staged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointsError {
    /// The round does not prescribe a run of this benchmark.
    #[error("{round} does not prescribe an endpoints run of {benchmark}")]
    NotPrescribed { round: String, benchmark: String },
    /// The round's conf lacks the seeds.
    #[error("{0} has no seeds")]
    NoSeeds(String),
    /// The directory is not a checkout of the client.
    #[error("{path} is not a checkout of mlcommons/endpoints: {reason}", path = path.display())]
    NotCheckout { path: PathBuf, reason: String },
    /// The checkout has local changes, but the rules require the unmodified client.
    #[error("the checkout {path} has local changes: {changes}", path = path.display())]
    Changed { path: PathBuf, changes: String },
    /// A file of the checkout cannot be read as configuration.
    #[error("{path} is not the client's reference configuration: {reason}", path = path.display())]
    ReferenceConfig { path: PathBuf, reason: String },
    /// A change of the configuration names no value of it.
    #[error("the configuration has no value `{0}`")]
    UnknownValue(String),
    /// No Python is new enough.
    #[error("no Python 3.12 or newer was found among {0}")]
    NoPython(String),
    /// The environment of the client was not set up.
    #[error("the client's Python environment {path} is not set up", path = .0.display())]
    NotSetUp(PathBuf),
    /// A program failed.
    #[error("{program} failed: {reason}")]
    Program { program: String, reason: String },
    /// The server cannot be used.
    #[error("the server at {url} cannot be used: {reason}")]
    Server { url: String, reason: String },
    /// The directory is not a run of the client.
    #[error("{path} is not a finished endpoints run: {reason}", path = path.display())]
    NotRun { path: PathBuf, reason: String },
    /// The tree does not describe the system.
    #[error("{tree} does not have {system}", tree = tree.display(), system = system.display())]
    NoSystem { tree: PathBuf, system: PathBuf },
    /// The tree has the result.
    #[error("{path} already exists", path = .0.display())]
    ResultExists(PathBuf),
    /// The output exists.
    #[error("{path} already exists", path = .0.display())]
    Exists(PathBuf),
    /// A file cannot be read or written.
    #[error("cannot use {path}", path = path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl EndpointsError {
    /// Returns who has to act.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Program { .. } | Self::File { .. } => ErrorKind::Internal,
            _ => ErrorKind::Usage,
        }
    }

    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
