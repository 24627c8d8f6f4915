//! Removed runs, which their devices must delete too.

use std::collections::BTreeSet;

use regatta_types::{DeviceId, RunId};

use super::{Result, Store, values};
use crate::database::params;

/// A removed run that may still be on its device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedRun {
    pub run: RunId,
    pub device: DeviceId,
    /// Whether every file was here with a valid signature. Otherwise, the coordinator has not seen the files, and a device that has some keeps them.
    pub is_released: bool,
}

/// Removed runs that may still be on their devices.
#[derive(Debug)]
pub struct RemovedRuns<'a> {
    pub(super) store: &'a Store,
}

impl RemovedRuns<'_> {
    /// Returns the removed runs whose device has not been sent `Forget`. Only includes devices that are online and not in a timed window.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn unsent(&self) -> Result<Vec<RemovedRun>> {
        self.store.rows(
            "SELECT run, device, release FROM removed_runs JOIN presence USING (device)
             WHERE sent = 0 AND online = 1 AND running IS NULL",
            params![],
            |row| {
                Ok(RemovedRun {
                    run: values::parsed(row, "run")?,
                    device: values::parsed(row, "device")?,
                    is_released: row.get("release")?,
                })
            },
        )
    }

    /// Records that a device was sent `Forget` for a removed run.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn mark_sent(&self, id: RunId) -> Result<()> {
        self.store.execute(
            "UPDATE removed_runs SET sent = 1 WHERE run = ?1",
            params![id.to_string()],
        )?;
        Ok(())
    }

    /// Compares the removed runs of a device with its inventory. A run that is still there is sent `Forget` again. A run that is missing is dropped
    /// from the store if the inventory `is_settled`; otherwise, another agent with the same identity may have it. Returns the removed runs that are
    /// still on the device.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn reconcile(
        &self,
        device: &DeviceId,
        holds: impl Fn(RunId) -> bool,
        is_settled: bool,
    ) -> Result<BTreeSet<RunId>> {
        let rows = self.store.rows(
            "SELECT run FROM removed_runs WHERE device = ?1",
            params![device.as_str()],
            |row| values::parsed(row, "run"),
        )?;
        let removed: Vec<RunId> = rows;
        let (held, gone): (BTreeSet<RunId>, BTreeSet<RunId>) =
            removed.into_iter().partition(|run| holds(*run));
        for run in &held {
            self.store.execute(
                "UPDATE removed_runs SET sent = 0 WHERE run = ?1",
                params![run.to_string()],
            )?;
        }
        for run in gone.iter().filter(|_| is_settled) {
            self.store.execute(
                "DELETE FROM removed_runs WHERE run = ?1",
                params![run.to_string()],
            )?;
        }
        Ok(held)
    }
}
