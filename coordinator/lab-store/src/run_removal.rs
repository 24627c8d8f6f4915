//! Runs that a user ends: removed runs, and runs that are recorded without their missing files.

use regatta_types::{DeviceId, RunId};

use super::{Result, RunRow, Runs, values};
use crate::database::params;

/// The result of removing a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunRemoval {
    /// Nothing was removed: the run has no record, or was reopened.
    Refused,
    /// The run is removed, and its device forgets its copy.
    Everywhere,
    /// The run is removed here. Its device keeps its copy, because not all of it is here with a valid signature.
    HereOnly,
}

impl Runs<'_> {
    /// Removes a recorded run. `Forget` is sent to its device, unless the run [stays there](super::RunRow::stays_on_device). A run that its
    /// device must still abort is not removed.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn remove(&self, id: RunId) -> Result<RunRemoval> {
        self.store.all_or_nothing(|store| {
            let Some(run) = store.runs().get(id)?.filter(RunRow::is_removable) else {
                return Ok(RunRemoval::Refused);
            };
            let id = id.to_string();
            for statement in [
                "INSERT INTO removed_runs (run, device, sent, release)
                     SELECT id, device, forgotten, CASE WHEN CAST(outcome -> 'complete' AS TEXT) = 'true'
                         AND CAST(outcome -> 'signed' AS TEXT) = 'true' THEN 1 ELSE 0 END FROM runs
                     WHERE id = ?1 AND known = 1 AND CAST(outcome -> 'forgettable' AS TEXT) = 'true'
                 ON CONFLICT (run) DO UPDATE SET device = excluded.device, sent = excluded.sent, release = excluded.release",
                "DELETE FROM streams WHERE run = ?1",
                "DELETE FROM staged_runs WHERE run = ?1",
                "DELETE FROM runs WHERE id = ?1",
            ] {
                store.execute(statement, params![&id])?;
            }
            Ok(if run.stays_on_device() {
                RunRemoval::HereOnly
            } else {
                RunRemoval::Everywhere
            })
        })
    }

    /// Gives up the files of a run that have not arrived. It is recorded with those that have, and no inventory reopens it. A run that may
    /// still execute gets a pending abort, which is sent until its device confirms it. Returns `false` when the run is over or was never
    /// sent.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn give_up(&self, id: RunId, reason: &str) -> Result<bool> {
        let changed = self.store.execute(
            "UPDATE runs SET abandoned = ?2, lost = 1, reason = coalesce(reason, ?2),
                 pending_abort = CASE WHEN phase IN ('draining', 'done', 'failed', 'aborted') THEN NULL ELSE ?2 END,
                 phase = CASE WHEN phase IN ('done', 'failed', 'aborted') THEN phase ELSE 'failed' END
             WHERE id = ?1 AND recorded IS NULL AND spec_sha256 IS NOT NULL", params![id.to_string(), reason])?;
        Ok(changed > 0)
    }

    /// Returns the given-up runs of a device that it must still abort, each with the reason.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn pending_aborts(&self, device: &DeviceId) -> Result<Vec<(RunId, String)>> {
        self.store.rows(
            "SELECT id, pending_abort FROM runs WHERE device = ?1 AND pending_abort IS NOT NULL",
            params![device.as_str()],
            |row| Ok((values::parsed(row, "id")?, row.get("pending_abort")?)),
        )
    }

    /// Stores that a given-up run no longer executes on its device.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn confirm_abort(&self, id: RunId) -> Result<()> {
        self.store.execute(
            "UPDATE runs SET pending_abort = NULL WHERE id = ?1 AND pending_abort IS NOT NULL",
            params![id.to_string()],
        )?;
        Ok(())
    }
}
