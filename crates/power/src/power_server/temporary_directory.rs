//! The server's directory for sessions that are under way. It is removed with the server.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use super::error::ServerError;
use crate::protocol::file_error::FileError;

/// How many names are tried.
const ATTEMPTS: u32 = 1000;

/// A directory that only this user reads.
#[derive(Debug)]
pub(super) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Makes one below the system's directory for temporary files (`TMPDIR`).
    pub(super) fn new() -> Result<Self, ServerError> {
        let mut number = 0;
        loop {
            let name = format!("regatta-power-server-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < ATTEMPTS => {
                    number += 1
                }
                Err(error) => return Err(FileError::at("make", &path)(error).into()),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // What is left is small, and the system empties its directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
