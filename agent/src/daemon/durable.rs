//! The state directory as a whole: free space, the reserve for a full disk, and the lock that keeps two daemons apart. Knows nothing
//! of runs.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use regatta_fsutil::free_space::free_bytes;

/// Space set aside, so that a disk that a run has filled up still takes the run's evidence and state.
#[derive(Debug, Clone)]
pub(crate) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// Evidence, state and journal of a run take some kilobytes.
    const BYTES: u64 = 512 * 1024;

    /// A reserve in the file `path`, not yet set aside.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Sets the space aside.
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

    /// Gives the space back when there is hardly any other.
    pub(crate) fn release_if_full(&self) {
        let is_full = self
            .path
            .parent()
            .is_none_or(|dir| free_bytes(dir).is_ok_and(|free| free < Self::BYTES));
        if is_full {
            self.release();
        }
    }

    /// Gives the space back. `false` when it was not set aside.
    pub(crate) fn release(&self) -> bool {
        let is_released = fs::remove_file(&self.path).is_ok();
        if is_released {
            tracing::warn!("the disk is full: the reserve is used for the run's state and evidence");
        }
        is_released
    }
}

/// Takes the lock file for as long as the returned file is open. `None` when another process has it.
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
