//! The disk space of logs on the device, and what is removed when space is short.
//!
//! The spool consists of the runs' directories (docs/decisions/0001). Its limits are `spool_max_mib` and the free space
//! of the disk. When space is short, the daemon acts in this order:
//!
//! 1. Before another run starts, it removes runs that the coordinator has released, the oldest first. Acknowledgements
//!    do not release a run, because they are not signed.
//! 2. It rejects a run if less than `min_free_mib` would be free. A queued run then fails with this reason.
//! 3. When half of `min_free_mib` is left, the active run loses its extras (`extras.rs`): they are truncated. LoadGen's
//!    own logs are never touched. If the disk still fills up, LoadGen's write error fails the run.

use std::{fs, io, path::Path};

use regatta_fsutil::free_space::free_bytes;
use regatta_types::RunId;

/// Why there is no space for a run.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSpace {
    /// The disk has too little free space.
    #[error(
        "{} MiB are free for its logs, {} MiB are needed (min_free_mib)", .free >> 20, .required >> 20
    )]
    Disk {
        /// Free bytes.
        free: u64,
        /// Required free bytes.
        required: u64,
    },
    /// The spool has reached its limit.
    #[error(
        "logs of other runs take up {} MiB of {} (spool_max_mib), and {} MiB are needed (min_free_mib)",
        .used >> 20, .limit >> 20, .required >> 20
    )]
    Spool {
        /// Bytes of all runs.
        used: u64,
        /// Limit of the spool in bytes.
        limit: u64,
        /// Required free bytes.
        required: u64,
    },
    /// The file system does not report its free space.
    #[error("the free space for logs cannot be read")]
    Unknown(#[source] io::Error),
}

/// The limits of the spool in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpoolLimits {
    /// Free bytes that a new run requires.
    pub(super) required: u64,
    /// Largest size of all runs together.
    pub(super) largest: u64,
}

impl SpoolLimits {
    /// Checks whether there is space for another run in this directory.
    ///
    /// # Errors
    /// When there is not, or when it cannot be determined.
    pub(super) fn check(self, runs: &Path) -> Result<(), NoSpace> {
        let free = free_bytes(runs).map_err(NoSpace::Unknown)?;
        if free < self.required {
            return Err(NoSpace::Disk {
                free,
                required: self.required,
            });
        }
        let used = bytes_of_runs(runs).map_err(NoSpace::Unknown)?;
        if used.saturating_add(self.required) > self.largest {
            return Err(NoSpace::Spool {
                used,
                limit: self.largest,
                required: self.required,
            });
        }
        Ok(())
    }
}

/// Returns the total size of all runs' files in bytes. Ignores entries that are not runs.
fn bytes_of_runs(runs: &Path) -> io::Result<u64> {
    let mut sum = 0_u64;
    for entry in fs::read_dir(runs)? {
        let entry = entry?;
        let is_run = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.parse::<RunId>().is_ok());
        if is_run {
            sum = sum.saturating_add(bytes_below(&entry.path()));
        }
    }
    Ok(sum)
}

/// Returns the total size of files below a directory in bytes, without following links. Unreadable entries count as 0
/// and are logged.
fn bytes_below(directory: &Path) -> u64 {
    let warn = |e: &io::Error| tracing::warn!("{} counts as empty: {e}", directory.display());
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) => {
            warn(&e);
            return 0;
        }
    };
    let mut sum = 0_u64;
    for entry in entries {
        let bytes = match entry.and_then(|entry| Ok((entry.metadata()?, entry.path()))) {
            Ok((found, path)) if found.is_dir() => bytes_below(&path),
            Ok((found, _)) => found.len(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => 0,
            Err(e) => {
                warn(&e);
                0
            }
        };
        sum = sum.saturating_add(bytes);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_needs_free_space_on_the_disk_and_in_the_spool() {
        let runs = tempfile::tempdir().unwrap();
        let files = runs.path().join(RunId::now().to_string()).join("files");
        fs::create_dir_all(&files).unwrap();
        fs::write(files.join("log"), vec![0; 3 << 20]).unwrap();
        fs::create_dir(runs.path().join("lost+found")).unwrap();
        fs::write(runs.path().join("lost+found/inode"), vec![0; 3 << 20]).unwrap();
        let check = |required: u64, largest: u64| {
            let checked = SpoolLimits { required, largest }.check(runs.path());
            checked.map_err(|e| e.to_string())
        };
        check(1 << 20, 4 << 20).unwrap();
        assert_eq!(
            check(2 << 20, 4 << 20).unwrap_err(),
            "logs of other runs take up 3 MiB of 4 (spool_max_mib), and 2 MiB are needed (min_free_mib)"
        );
        assert!(
            check(u64::MAX, u64::MAX)
                .unwrap_err()
                .ends_with("are needed (min_free_mib)")
        );
    }
}
