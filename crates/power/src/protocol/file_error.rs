//! An error of the system with its file.

use std::{
    io,
    path::{Path, PathBuf},
};

/// A file that could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct FileError {
    /// What was tried: `write`, `read`, `make`, `remove`.
    pub action: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// The system's reason.
    #[source]
    pub source: io::Error,
}

impl FileError {
    /// Adds what was tried and the file to an error of the system.
    pub(crate) fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { action, path, source }
    }
}
