//! The disk space of logs on the device, and what is removed when space is short.
//!
//! The spool consists of the runs' directories (docs/decisions/0001). Its limits are `spool_max_mib` and the free space
//! of the disk. When space is short, the daemon acts in this order:
//!
//! 1. Before another run starts, it removes runs that the coordinator has released, the oldest first. Acknowledgements
//!    do not release a run, because they are not signed.
//! 2. It rejects a run if less than `min_free_mib` would be free. A queued run then fails with this reason.
//! 3. When half of `min_free_mib` is left, the active run loses its extras ([`Extras`]): they are truncated. LoadGen's
//!    own logs are never touched. If the disk still fills up, LoadGen's write error fails the run.

use std::{fs, io, path::Path};

use regatta_fsutil::free_space::free_bytes;
use regatta_types::RunId;

use super::{extras::Extras, link::Link, live_files::end_live, run::Run, service::Service};

/// Why there is no space for a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSpace {
    /// The disk has too little free space.
    #[error(
        "{} MiB are free where its logs would lie, {} MiB are wanted (min_free_mib)", .free >> 20, .wanted >> 20
    )]
    Disk {
        /// Free bytes.
        free: u64,
        /// Required free bytes.
        wanted: u64,
    },
    /// The spool has reached its limit.
    #[error(
        "logs of other runs take up {} MiB of {} (spool_max_mib), and {} MiB are wanted (min_free_mib)",
        .used >> 20, .bound >> 20, .wanted >> 20
    )]
    Spool {
        /// Bytes of all runs.
        used: u64,
        /// Limit of the spool in bytes.
        bound: u64,
        /// Required free bytes.
        wanted: u64,
    },
    /// The file system does not report its free space.
    #[error("the free space for logs cannot be told")]
    Unknown(#[source] io::Error),
}

/// The limits of the spool in bytes.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    wanted: u64,
    most: u64,
}

impl Bounds {
    fn check(self, runs: &Path) -> Result<(), NoSpace> {
        let free = free_bytes(runs).map_err(NoSpace::Unknown)?;
        if free < self.wanted {
            return Err(NoSpace::Disk {
                free,
                wanted: self.wanted,
            });
        }
        let used = bytes_of_runs(runs).map_err(NoSpace::Unknown)?;
        if used.saturating_add(self.wanted) > self.most {
            return Err(NoSpace::Spool {
                used,
                bound: self.most,
                wanted: self.wanted,
            });
        }
        Ok(())
    }
}

impl<L: Link> Service<L> {
    /// Removes released runs until there is space for another run.
    ///
    /// # Errors
    /// The reason for the run's state, when there is not enough space.
    pub(super) fn free_space(&mut self) -> Result<(), String> {
        let bounds = Bounds {
            wanted: self.config.min_free_bytes,
            most: self.config.spool_max_bytes,
        };
        loop {
            let Err(none) = bounds.check(&self.runs_dir) else {
                return Ok(());
            };
            let oldest = self.oldest_removable();
            // If the free space is unknown, no run is removed.
            let (NoSpace::Disk { .. } | NoSpace::Spool { .. }, Some(oldest)) = (&none, oldest) else {
                let none = anyhow::Error::from(none);
                return Err(format!("the device cannot keep the run: {none:#}"));
            };
            tracing::warn!("run {oldest}: released by the coordinator, and makes room for another");
            if !self.remove_run(oldest) {
                return Err("the device cannot keep the run: a released one cannot be removed".to_owned());
            }
        }
    }

    fn oldest_removable(&self) -> Option<RunId> {
        let candidates = self.runs.values().filter(|run| run.may_be_removed());
        candidates.min_by_key(|run| run.job.arrival).map(Run::id)
    }

    /// Checks, with every heartbeat, whether the active run leaves enough space.
    pub(super) fn watch_free_space(&mut self) {
        let Some(active) = &mut self.active else { return };
        if let Some(extras) = &active.extras {
            extras.cut();
            return;
        }
        let Ok(free) = free_bytes(&self.runs_dir) else {
            return;
        };
        if free >= self.config.min_free_bytes / 2 {
            return;
        }
        let Some(run) = self.runs.get(&active.run) else {
            return;
        };
        tracing::warn!(
            "run {}: {} MiB are free: its extras stop here",
            active.run,
            free >> 20
        );
        end_live(&mut self.live);
        active.extras = Some(Extras::stop(&run.dir.files(), free));
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
    fn room_is_what_the_disk_has_and_what_the_spool_may_have() {
        let runs = tempfile::tempdir().unwrap();
        let files = runs.path().join(RunId::now().to_string()).join("files");
        fs::create_dir_all(&files).unwrap();
        fs::write(files.join("log"), vec![0; 3 << 20]).unwrap();
        fs::create_dir(runs.path().join("lost+found")).unwrap();
        fs::write(runs.path().join("lost+found/inode"), vec![0; 3 << 20]).unwrap();
        let said = |wanted: u64, most: u64| {
            let checked = Bounds { wanted, most }.check(runs.path());
            checked.map_err(|none| none.to_string())
        };
        said(1 << 20, 4 << 20).unwrap();
        assert_eq!(
            said(2 << 20, 4 << 20).unwrap_err(),
            "logs of other runs take up 3 MiB of 4 (spool_max_mib), and 2 MiB are wanted (min_free_mib)"
        );
        assert!(
            said(u64::MAX, u64::MAX)
                .unwrap_err()
                .ends_with("are wanted (min_free_mib)")
        );
    }
}
