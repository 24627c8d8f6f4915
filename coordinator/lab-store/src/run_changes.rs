//! Changes of run rows. Each change is one statement, so that no reader sees half of one.

use regatta_types::{
    DeviceId, RunId,
    documents::{Record, RunPhase, RunState},
};

use super::{
    Result, RunRow, Runs, StoreError, now,
    run_draft::{RunDraft, RunOutcome},
    values,
};
use crate::database::params;

/// The effect of a reported state on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunChange {
    /// The run was not sent to that device.
    Unknown,
    /// The state is not newer than the stored one, or the run is closed.
    Stale,
    /// The state is the stored one, and the run is open.
    Repeated,
    /// The run has the reported state now.
    Changed,
}

/// Returns whether a run in this phase no longer executes on its device.
const fn has_stopped(phase: RunPhase) -> bool {
    phase.is_final() || matches!(phase, RunPhase::Draining)
}

impl Runs<'_> {
    /// Adds a run that waits at the coordinator.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add(&self, draft: &RunDraft) -> Result<()> {
        let spec = &draft.spec;
        let text = values::to_json(draft)?;
        self.store.execute(
            "INSERT INTO runs (id, device, benchmark, scenario, mode, engine, created, draft, phase, revision)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0)", params![
                spec.run.to_string(),
                spec.device.as_str(),
                spec.benchmark.name,
                spec.scenario.as_str(),
                spec.mode.as_str(),
                spec.engine.kind.as_str(),
                spec.created,
                text,
                RunPhase::Queued.as_str(),
            ])?;
        Ok(())
    }

    /// Sets or removes the note on a run.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn set_note(&self, id: RunId, note: Option<&str>) -> Result<()> {
        self.store.execute(
            "UPDATE runs SET note = ?2 WHERE id = ?1",
            params![id.to_string(), note],
        )?;
        Ok(())
    }

    /// Fixes a run's spec, so that it may be sent. Returns `false` when the run has ended meanwhile.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn fix_spec(&self, id: RunId, sha256: &str) -> Result<bool> {
        let changed = self.store.execute(
            "UPDATE runs SET spec_sha256 = ?2 WHERE id = ?1 AND recorded IS NULL",
            params![id.to_string(), sha256],
        )?;
        Ok(changed > 0)
    }

    /// Stores a state that a device reported, if it is newer and the run was sent to that device.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record_state(&self, device: &DeviceId, id: RunId, state: &RunState) -> Result<RunChange> {
        if self.device_of_sent(id)?.as_ref() != Some(device) {
            return Ok(RunChange::Unknown);
        }
        if has_stopped(state.phase) {
            self.confirm_abort(id)?;
        }
        let changed = self.store.execute(
            "UPDATE runs SET known = 1, phase = ?2, reason = ?3, revision = ?4,
                 started = CASE WHEN started IS NULL AND ?2 = 'running' THEN ?5 ELSE started END
             WHERE id = ?1 AND recorded IS NULL AND lost = 0 AND (known = 0 OR revision < ?4)",
            params![
                id.to_string(),
                state.phase.as_str(),
                state.reason,
                values::signed(state.revision),
                now()
            ],
        )?;
        if changed > 0 {
            return Ok(RunChange::Changed);
        }
        let is_repeated: bool = self.store.row(
            "SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND recorded IS NULL AND lost = 0 AND revision = ?2)",
            params![id.to_string(), values::signed(state.revision)], |row| row.get(0))?;
        Ok(if is_repeated {
            RunChange::Repeated
        } else {
            RunChange::Stale
        })
    }

    /// Marks a run as lost, because its device no longer has it.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn mark_lost(&self, id: RunId, reason: &str) -> Result<()> {
        self.store.execute(
            "UPDATE runs SET lost = 1,
                 reason = CASE WHEN phase IN ('done', 'failed', 'aborted') THEN reason ELSE ?2 END,
                 phase = CASE WHEN phase IN ('done', 'failed', 'aborted') THEN phase ELSE 'failed' END
             WHERE id = ?1 AND recorded IS NULL",
            params![id.to_string(), reason],
        )?;
        Ok(())
    }

    /// Reopens a run that its device has after all.
    ///
    /// The run was marked as lost, or recorded without any of its files, for example after a forged state. Its device is queried for the
    /// state. Returns `false` when the run is neither, was given up by a user, or is not that device's. A run whose attempt has ended in a
    /// campaign stays recorded, because its cell would count it besides the next attempt; its device is requested to abort it.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn reopen(&self, device: &DeviceId, id: RunId) -> Result<bool> {
        self.store.execute(
            "UPDATE runs SET pending_abort = 'its campaign has ended this attempt'
             WHERE id = ?1 AND device = ?2 AND lost = 1 AND recorded IS NOT NULL AND abandoned IS NULL
                 AND pending_abort IS NULL AND EXISTS (
                     SELECT 1 FROM attempts WHERE attempts.run = runs.id AND attempts.ended IS NOT NULL)",
            params![id.to_string().as_str(), device.as_str()],
        )?;
        let changed = self.store.execute(
            "UPDATE runs SET lost = 0, known = 0, recorded = NULL, outcome = NULL, phase = ?3, reason = NULL,
                 revision = 0, started = NULL WHERE id = ?1 AND device = ?2 AND spec_sha256 IS NOT NULL AND abandoned
                 IS NULL AND NOT EXISTS ( SELECT 1 FROM attempts WHERE attempts.run = runs.id AND attempts.ended IS
                 NOT NULL) AND (lost = 1 OR recorded IS NOT NULL AND coalesce(CAST(outcome -> 'complete' AS TEXT),
                 'false') <> 'true' AND NOT EXISTS (SELECT 1 FROM streams
                 WHERE run = runs.id AND listed = 1))", params![
                id.to_string(),
                device.as_str(),
                RunPhase::Queued.as_str()
            ])?;
        Ok(changed > 0)
    }

    /// Clears the sent marks of a run that its device still has, so that `Forget` or `Release` is sent again. `released` is whether the
    /// device has received the release.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn clear_sent_marks(&self, device: &DeviceId, id: RunId, released: bool) -> Result<()> {
        self.store.execute(
            "UPDATE runs SET forgotten = 0, released = CASE WHEN ?3 = 1 THEN released ELSE 0 END
                 WHERE id = ?1 AND device = ?2 AND (forgotten = 1 OR (released = 1 AND ?3 = 0))",
            params![id.to_string(), device.as_str(), released],
        )?;
        Ok(())
    }

    /// Requests the abort of a run. A run that was never sent ends at once. Returns `false` when the run has already ended.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn request_abort(&self, id: RunId, reason: &str) -> Result<bool> {
        let changed = self.store.execute(
            "UPDATE runs SET abort = ?2,
                 phase = CASE WHEN spec_sha256 IS NULL THEN 'aborted' ELSE phase END,
                 reason = CASE WHEN spec_sha256 IS NULL THEN ?2 ELSE reason END,
                 recorded = CASE WHEN spec_sha256 IS NULL THEN ?3 ELSE recorded END
             WHERE id = ?1 AND recorded IS NULL AND phase NOT IN ('done', 'failed', 'aborted')",
            params![id.to_string(), reason, now()],
        )?;
        Ok(changed > 0)
    }

    /// Requests that the device stops the model server of a run, which then completes. Returns `false` when the run has ended.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn request_server_stop(&self, id: RunId) -> Result<bool> {
        let changed = self.store.execute(
            "UPDATE runs SET stop_server = 1 WHERE id = ?1 AND recorded IS NULL AND phase NOT IN ('done',
                 'failed', 'aborted')",
            params![id.to_string()],
        )?;
        Ok(changed > 0)
    }

    /// Fails a run that cannot be sent.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn fail_unsent(&self, id: RunId, reason: &str) -> Result<()> {
        self.store.execute(
            "UPDATE runs SET phase = 'failed', reason = ?2, recorded = ?3
                 WHERE id = ?1 AND spec_sha256 IS NULL",
            params![id.to_string(), reason, now()],
        )?;
        Ok(())
    }

    /// Stores that a run's record is on disk, with its final state and outcome. Returns `false` when the run has changed since `run` was
    /// read. Then the record must be written again.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record(&self, run: &RunRow, record: &Record, outcome: &RunOutcome) -> Result<bool> {
        let text = values::to_json(outcome)?;
        let is_signed = record.evidence_signature_valid == Some(true);
        let changed = self.store.execute(
            "UPDATE runs SET recorded = ?2, outcome = ?3, phase = ?4, reason = ?5, recorded_at = CASE WHEN
                 recorded IS NULL THEN ?6 ELSE recorded_at END, started = coalesce(started, ?9), known = CASE WHEN
                 ?11 = 1 THEN 1 ELSE known END WHERE id = ?1 AND lost = ?7 AND (revision = ?8 OR ?10 = 1)",
            params![
                record.run.to_string(),
                record.written,
                text,
                record.state.phase.as_str(),
                record.state.reason,
                self.store.service().seconds_served()?,
                run.lost,
                values::signed(run.state.revision),
                record.started,
                // Signed evidence decided how the run ended, and no later state changes that.
                is_signed && !run.lost && !run.state.phase.is_final(),
                // Its device has the run, even if none of its states has arrived.
                is_signed
            ],
        )?;
        Ok(changed > 0)
    }

    /// Does the same as `record`, for a run that must not change meanwhile.
    ///
    /// # Errors
    /// Returns [`StoreError::RunChanged`] when the run has changed, and an error when the store fails.
    pub fn record_unchanged(&self, run: &RunRow, record: &Record, outcome: &RunOutcome) -> Result<()> {
        if self.record(run, record, outcome)? {
            Ok(())
        } else {
            Err(StoreError::RunChanged(run.id))
        }
    }

    /// Stores whether the device was sent `Forget` for a run.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn set_forget_sent(&self, id: RunId, sent: bool) -> Result<()> {
        self.store.execute(
            "UPDATE runs SET forgotten = ?2 WHERE id = ?1 AND forgotten <> ?2",
            params![id.to_string(), sent],
        )?;
        Ok(())
    }

    /// Stores that the device was sent `Release` for a run.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn mark_release_sent(&self, id: RunId) -> Result<()> {
        self.store.execute(
            "UPDATE runs SET released = 1 WHERE id = ?1",
            params![id.to_string()],
        )?;
        Ok(())
    }
}
