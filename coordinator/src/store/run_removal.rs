//! Ends of runs by a user: removed runs, which their devices must forget too, and runs whose missing files are given up. Also which
//! submission trees hold a run, because such a run is not removed unnoticed.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use regatta_types::{DeviceId, RunId};
use rusqlite::params;

use super::{Result, RunRow, Store, now, values};

/// What became of a run that a user removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunRemoval {
    /// Nothing was removed: the run has no record, or was reopened.
    Refused,
    /// The run is removed, and its device forgets its copy.
    Everywhere,
    /// The run is removed here. Its device keeps its copy, because not all of it is here with a valid signature.
    HereOnly,
}

impl Store {
    /// Removes a recorded run. `Forget` is sent to its device, unless the run [stays there](super::RunRow::stays_on_device).
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(crate) fn remove_run(&self, id: RunId) -> Result<RunRemoval> {
        self.all_or_nothing(|store| {
            let Some(run) = store.run(id)?.filter(RunRow::is_over) else {
                return Ok(RunRemoval::Refused);
            };
            let id = id.to_string();
            for statement in [
                "INSERT OR REPLACE INTO removed_runs (run, device, sent)
                     SELECT id, device, forgotten FROM runs
                     WHERE id = ?1 AND known = 1 AND json_extract(outcome, '$.forgettable')",
                "DELETE FROM streams WHERE run = ?1",
                "DELETE FROM staged_runs WHERE run = ?1",
                "DELETE FROM runs WHERE id = ?1",
            ] {
                store.connection.execute(statement, [&id])?;
            }
            Ok(if run.stays_on_device() {
                RunRemoval::HereOnly
            } else {
                RunRemoval::Everywhere
            })
        })
    }

    /// Returns removed runs whose device has not been sent `Release` and `Forget`. The device is online and not in a timed window.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(crate) fn removed_runs_to_forget(&self) -> Result<Vec<(RunId, DeviceId)>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT removed_runs.run AS run, devices.id AS device FROM removed_runs
                 JOIN devices ON devices.id = removed_runs.device
             WHERE sent = 0 AND online = 1 AND running IS NULL",
        )?;
        let rows = statement.query_map([], |row| {
            Ok((values::parsed(row, "run")?, values::parsed(row, "device")?))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Stores that a device was sent `Release` and `Forget` for a removed run.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(crate) fn removal_is_sent(&self, id: RunId) -> Result<()> {
        self.connection
            .prepare_cached("UPDATE removed_runs SET sent = 1 WHERE run = ?1")?
            .execute([id.to_string()])?;
        Ok(())
    }

    /// Compares a device's removed runs with the runs that it holds. A run that it still holds is forgotten again, and one that it does
    /// not hold is no longer remembered. Returns the removed runs that it still holds.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(crate) fn reconcile_removed_runs(
        &self,
        device: &DeviceId,
        holds: impl Fn(RunId) -> bool,
    ) -> Result<BTreeSet<RunId>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT run FROM removed_runs WHERE device = ?1")?;
        let rows = statement.query_map([device.as_str()], |row| values::parsed(row, "run"))?;
        let removed: Vec<RunId> = rows.collect::<rusqlite::Result<_>>()?;
        let (held, gone): (BTreeSet<RunId>, BTreeSet<RunId>) =
            removed.into_iter().partition(|run| holds(*run));
        for run in &held {
            self.connection
                .prepare_cached("UPDATE removed_runs SET sent = 0 WHERE run = ?1")?
                .execute([run.to_string()])?;
        }
        for run in &gone {
            self.connection
                .prepare_cached("DELETE FROM removed_runs WHERE run = ?1")?
                .execute([run.to_string()])?;
        }
        Ok(held)
    }

    /// Gives up the files of a run that have not arrived. It is recorded with those that have, and no inventory reopens it. Returns
    /// `false` when the run is over or was never sent.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(crate) fn give_up_run(&self, id: RunId, reason: &str) -> Result<bool> {
        let changed = self.connection.execute(
            "UPDATE runs SET abandoned = ?2, lost = 1, reason = coalesce(reason, ?2),
                 phase = CASE WHEN phase IN ('done', 'failed', 'aborted') THEN phase ELSE 'failed' END
             WHERE id = ?1 AND recorded IS NULL AND spec_sha256 IS NOT NULL",
            params![id.to_string(), reason],
        )?;
        Ok(changed > 0)
    }

    /// Stores that a submission tree holds runs.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(crate) fn runs_are_staged(&self, runs: &BTreeSet<RunId>, tree: &Path) -> Result<()> {
        self.all_or_nothing(|store| {
            for run in runs {
                store.connection.execute(
                    "INSERT OR REPLACE INTO staged_runs (run, tree, staged)
                         SELECT id, ?2, ?3 FROM runs WHERE id = ?1",
                    params![run.to_string(), tree.to_string_lossy(), now()],
                )?;
            }
            Ok(())
        })
    }

    /// Returns the submission trees that were made with a run. Some may have been deleted since.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(crate) fn trees_with(&self, id: RunId) -> Result<Vec<PathBuf>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT tree FROM staged_runs WHERE run = ?1 ORDER BY staged")?;
        let rows = statement.query_map([id.to_string()], |row| row.get::<_, String>(0))?;
        Ok(rows
            .map(|tree| tree.map(PathBuf::from))
            .collect::<rusqlite::Result<_>>()?)
    }
}
