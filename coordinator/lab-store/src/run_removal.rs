//! Ends of runs by a user: removed runs, which their devices must forget too, and runs whose missing files are given up. Also which
//! submission trees hold a run, because such a run is not removed unnoticed.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use regatta_types::{DeviceId, RunId};
use rusqlite::{OptionalExtension as _, params};

use super::{Result, RunRow, Store, values};

/// A removed run that its device may still hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedRun {
    /// The run.
    pub run: RunId,
    /// Its device.
    pub device: DeviceId,
    /// Whether every file was here with a valid signature. Otherwise the coordinator knew of no file, and a device that has some keeps them.
    pub is_released: bool,
}

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

impl Store {
    /// Removes a recorded run. `Forget` is sent to its device, unless the run [stays there](super::RunRow::stays_on_device). A run that its
    /// device must still abort is not removed.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn remove_run(&self, id: RunId) -> Result<RunRemoval> {
        self.all_or_nothing(|store| {
            let Some(run) = store.run(id)?.filter(RunRow::is_removable) else {
                return Ok(RunRemoval::Refused);
            };
            let id = id.to_string();
            for statement in [
                "INSERT OR REPLACE INTO removed_runs (run, device, sent, release)
                     SELECT id, device, forgotten,
                         coalesce(json_extract(outcome, '$.complete') AND json_extract(outcome, '$.signed'), 0) FROM runs
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

    /// Returns removed runs whose device has not been sent `Forget`. The device is online and not in a timed window.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn removed_runs_to_forget(&self) -> Result<Vec<RemovedRun>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT removed_runs.run AS run, devices.id AS device, release FROM removed_runs
                 JOIN devices ON devices.id = removed_runs.device
             WHERE sent = 0 AND online = 1 AND running IS NULL",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(RemovedRun {
                run: values::parsed(row, "run")?,
                device: values::parsed(row, "device")?,
                is_released: row.get("release")?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Stores that a device was sent `Forget` for a removed run.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn removal_is_sent(&self, id: RunId) -> Result<()> {
        self.connection
            .prepare_cached("UPDATE removed_runs SET sent = 1 WHERE run = ?1")?
            .execute([id.to_string()])?;
        Ok(())
    }

    /// Compares a device's removed runs with the runs that it holds. A run that it still has is forgotten again. One that it does
    /// not have is no longer remembered if the inventory `is_settled`; otherwise another agent with the same identity may have
    /// it. Returns the removed runs that the device still holds.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn reconcile_removed_runs(
        &self,
        device: &DeviceId,
        holds: impl Fn(RunId) -> bool,
        is_settled: bool,
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
        for run in gone.iter().filter(|_| is_settled) {
            self.connection
                .prepare_cached("DELETE FROM removed_runs WHERE run = ?1")?
                .execute([run.to_string()])?;
        }
        Ok(held)
    }

    /// Gives up the files of a run that have not arrived. It is recorded with those that have, and no inventory reopens it. A run that may
    /// still execute gets a pending abort, which is sent until its device confirms it. Returns `false` when the run is over or was never
    /// sent.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn give_up_run(&self, id: RunId, reason: &str) -> Result<bool> {
        let changed = self.connection.execute(
            "UPDATE runs SET abandoned = ?2, lost = 1, reason = coalesce(reason, ?2),
                 pending_abort = CASE WHEN phase IN ('draining', 'done', 'failed', 'aborted') THEN NULL ELSE ?2 END,
                 phase = CASE WHEN phase IN ('done', 'failed', 'aborted') THEN phase ELSE 'failed' END
             WHERE id = ?1 AND recorded IS NULL AND spec_sha256 IS NOT NULL",
            params![id.to_string(), reason],
        )?;
        Ok(changed > 0)
    }

    /// Returns the given-up runs of a device that it must still abort, each with the reason.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn pending_aborts(&self, device: &DeviceId) -> Result<Vec<(RunId, String)>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, pending_abort FROM runs WHERE device = ?1 AND pending_abort IS NOT NULL",
        )?;
        let rows = statement.query_map([device.as_str()], |row| {
            Ok((values::parsed(row, "id")?, row.get("pending_abort")?))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Stores that a given-up run no longer executes on its device.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn abort_is_confirmed(&self, id: RunId) -> Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE runs SET pending_abort = NULL WHERE id = ?1 AND pending_abort IS NOT NULL",
            )?
            .execute([id.to_string()])?;
        Ok(())
    }

    /// Stores that a submission tree holds a run, unless the store does not know the run.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn run_is_staged(&self, run: RunId, tree: &Path, staged: &str) -> Result<()> {
        self.connection.execute(
            "INSERT OR REPLACE INTO staged_runs (run, tree, staged) SELECT id, ?2, ?3 FROM runs WHERE id = ?1",
            params![run.to_string(), tree.to_string_lossy(), staged],
        )?;
        Ok(())
    }

    /// Returns the submission trees that were made with runs of the store, the newest first: directory, time and number of runs. Some may
    /// have been deleted since.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn staged_trees(&self) -> Result<Vec<(PathBuf, String, u64)>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT tree, max(staged) AS staged, count(*) AS runs FROM staged_runs GROUP BY tree ORDER BY staged DESC",
        )?;
        let rows = statement.query_map([], |row| {
            let tree: String = row.get("tree")?;
            Ok((
                PathBuf::from(tree),
                row.get("staged")?,
                values::unsigned(row, "runs")?,
            ))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the round of the runs in a submission tree.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn round_of_tree(&self, tree: &Path) -> Result<Option<String>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT json_extract(draft, '$.spec.round') FROM runs JOIN staged_runs ON run = id WHERE tree = ?1 LIMIT 1",
        )?;
        Ok(statement
            .query_row([tree.to_string_lossy()], |row| row.get(0))
            .optional()?)
    }

    /// Returns the submission trees that were made with a run. Some may have been deleted since.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn trees_with(&self, id: RunId) -> Result<Vec<PathBuf>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT tree FROM staged_runs WHERE run = ?1 ORDER BY staged")?;
        let rows = statement.query_map([id.to_string()], |row| row.get::<_, String>(0))?;
        Ok(rows
            .map(|tree| tree.map(PathBuf::from))
            .collect::<rusqlite::Result<_>>()?)
    }
}
