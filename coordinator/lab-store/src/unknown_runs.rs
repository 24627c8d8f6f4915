//! Runs that devices hold and this store does not have, as after restoring an older copy of the workspace. Devices keep them.

use std::collections::{BTreeMap, BTreeSet};

use regatta_types::{DeviceId, RunId};

use super::{Result, Store, values};
use crate::database::params;

/// Runs that are on devices, but not in the store.
#[derive(Debug)]
pub struct UnknownRuns<'a> {
    pub(super) store: &'a Store,
}

impl UnknownRuns<'_> {
    /// Replaces the unknown runs of a device.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn replace(&self, device: &DeviceId, runs: &BTreeSet<RunId>) -> Result<()> {
        self.store.all_or_nothing(|store| {
            store.unknown_runs().forget(device)?;
            for run in runs {
                store.execute(
                    "INSERT INTO unknown_runs (device, run) VALUES (?1, ?2)",
                    params![device.as_str(), run.to_string()],
                )?;
            }
            Ok(())
        })
    }

    /// Forgets the unknown runs of a device.
    pub(super) fn forget(&self, device: &DeviceId) -> Result<()> {
        self.store.execute(
            "DELETE FROM unknown_runs WHERE device = ?1",
            params![device.as_str()],
        )?;
        Ok(())
    }

    /// Returns the unknown runs of every device that holds some, oldest first. Runs that the store has got since are left out.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn all(&self) -> Result<BTreeMap<DeviceId, Vec<RunId>>> {
        let rows: Vec<(DeviceId, RunId)> = self.store.rows(
            "SELECT device, run FROM unknown_runs WHERE run NOT IN (SELECT id
                 FROM runs) ORDER BY device, run",
            params![],
            |row| Ok((values::parsed(row, "device")?, values::parsed(row, "run")?)),
        )?;
        let mut found: BTreeMap<DeviceId, Vec<RunId>> = BTreeMap::new();
        for (device, run) in rows {
            found.entry(device).or_default().push(run);
        }
        Ok(found)
    }
}
