//! The state directory: free space, the reserve for a full disk, and the lock against a second daemon. This module does
//! not know runs.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use regatta_fsutil::free_space::free_bytes;

/// Reserved disk space. It allows the daemon to write a run's evidence and state after the run has filled the disk.
#[derive(Debug, Clone)]
pub(crate) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// Size of the reserve in bytes. Evidence, state and journal of a run take a few kilobytes.
    const BYTES: u64 = 512 * 1024;

    /// Returns a reserve in the file `path` without allocating it.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Allocates the space.
    pub(crate) fn set_aside(&self) -> io::Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.path)?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, Self::BYTES)?;
        file.sync_all()
    }

    /// Frees the space if the disk has less free space than the reserve.
    pub(crate) fn release_if_full(&self) {
        let is_full = self
            .path
            .parent()
            .is_none_or(|dir| free_bytes(dir).is_ok_and(|free| free < Self::BYTES));
        if is_full {
            self.release();
        }
    }

    /// Frees the space. Returns `false` if it was not allocated.
    pub(crate) fn release(&self) -> bool {
        let is_released = fs::remove_file(&self.path).is_ok();
        if is_released {
            tracing::warn!("the disk is full: the reserve is used for the run's state and evidence");
        }
        is_released
    }
}

/// Takes the lock for as long as the returned file is open. Returns `None` if another process holds it.
pub(crate) fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(e) => Err(e.into()),
    }
}
