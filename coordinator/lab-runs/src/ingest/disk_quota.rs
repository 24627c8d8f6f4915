//! Limits the disk space that devices may use: a maximum per run, and a minimum of free space.
//! A refused message is not acknowledged, so its device keeps it and sends it again.

use std::{
    collections::HashMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use regatta_types::RunId;
use rustix::fs::statvfs;

use regatta_lab_store::workspace::{Workspace, kept_free_bytes};

/// The time for which a reading of the free space is used. A fast network delivers less than the minimum within it.
const LOOK: Duration = Duration::from_millis(200);

/// The limits, and the space that each run uses.
#[derive(Debug)]
pub(super) struct DiskQuota {
    runs: PathBuf,
    min_free: Option<u64>,
    max_run: u64,
    last_look: Option<(Instant, Result<(), NoSpace>)>,
    /// Bytes of each run in delivery.
    by_run: HashMap<RunId, u64>,
}

/// The workspace's disk is nearly full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{free_mib} MiB are free on the workspace's disk, and {floor_mib} MiB must stay free; hint: free space, or set `min_free_mib` \
     in regatta.toml"
)]
pub(super) struct NoSpace {
    free_mib: u64,
    floor_mib: u64,
}

/// A run exceeds its maximum size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a run may have {max_mib} MiB at most; hint: set `max_run_mib` in regatta.toml and restart `regatta serve`"
)]
pub(super) struct RunTooLarge {
    max_mib: u64,
}

impl DiskQuota {
    /// Takes the limits from the workspace's configuration.
    pub(super) fn of(workspace: &Workspace) -> Self {
        let config = workspace.config();
        Self {
            runs: workspace.runs(),
            min_free: config.min_free_bytes,
            max_run: config.max_run_bytes,
            last_look: None,
            by_run: HashMap::new(),
        }
    }

    /// Checks that the disk has space for logs.
    ///
    /// # Errors
    /// Returns [`NoSpace`] when free space is below the minimum.
    pub(super) fn check_free_space(&mut self) -> Result<(), NoSpace> {
        match self.last_look {
            Some((at, found)) if at.elapsed() < LOOK => found,
            _ => {
                let found = self.look();
                self.last_look = Some((Instant::now(), found));
                found
            }
        }
    }

    fn look(&self) -> Result<(), NoSpace> {
        // If the file system cannot report its free space, a full disk shows as a write error.
        let Ok(disk) = statvfs(&self.runs) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let total = disk.f_blocks.saturating_mul(disk.f_frsize);
        let floor = kept_free_bytes(self.min_free, total);
        if free >= floor {
            return Ok(());
        }
        Err(NoSpace {
            free_mib: free >> 20,
            floor_mib: floor >> 20,
        })
    }

    /// Reserves `bytes` more for a run. `present` counts the run's bytes where they are not known yet.
    ///
    /// # Errors
    /// Returns the error of `present`. The inner result is [`RunTooLarge`] when the run would exceed its limit.
    pub(super) fn reserve<E>(
        &mut self,
        run: RunId,
        bytes: u64,
        present: impl FnOnce() -> Result<u64, E>,
    ) -> Result<Result<(), RunTooLarge>, E> {
        let used = match self.by_run.get(&run) {
            Some(used) => *used,
            None => present()?,
        };
        let after = used.saturating_add(bytes);
        if after > self.max_run {
            self.by_run.insert(run, used);
            return Ok(Err(RunTooLarge {
                max_mib: self.max_run >> 20,
            }));
        }
        self.by_run.insert(run, after);
        Ok(Ok(()))
    }

    /// Discards the cached sizes, because written bytes were removed.
    pub(super) fn count_anew(&mut self) {
        self.by_run.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(max_run: u64, min_free: Option<u64>) -> DiskQuota {
        DiskQuota {
            runs: std::env::temp_dir(),
            min_free,
            max_run,
            last_look: None,
            by_run: HashMap::new(),
        }
    }

    #[test]
    fn a_run_has_its_bytes_and_no_more() {
        let mut quota = quota(100, None);
        let run: RunId = "01930e7a-6f00-7000-8000-000000000001".parse().unwrap();
        let mut reserve = |bytes| quota.reserve::<()>(run, bytes, || Ok(30)).unwrap().is_ok();
        assert!(reserve(70) && !reserve(1));
        quota.count_anew();
        assert!(quota.reserve::<()>(run, 60, || Ok(40)).unwrap().is_ok());
    }

    #[test]
    fn the_last_of_the_disk_stays_free() {
        assert_eq!(quota(0, Some(0)).check_free_space(), Ok(()));
        let refused = quota(0, Some(u64::MAX)).check_free_space().unwrap_err();
        assert!(refused.to_string().contains("min_free_mib"), "{refused}");
    }
}
