//! Runs as they stand: what was asked for, where each is, and what came of it. Changes stand in `run_changes`.

use regatta_types::{
    DeviceId, Mode, RunId, Scenario,
    documents::{AccuracyResult, RunPhase, RunState},
};
use rusqlite::{OptionalExtension as _, Params, Row};

use super::run_draft::{RunDraft, RunOutcome};
use super::{Result, Store, values};

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunRow {
    /// Its id.
    pub(crate) id: RunId,
    /// The device that is to run it.
    pub(crate) device: DeviceId,
    /// The benchmark's name.
    pub(crate) benchmark: String,
    /// The scenario.
    pub(crate) scenario: Scenario,
    /// The mode.
    pub(crate) mode: Mode,
    /// What was asked for.
    pub(crate) draft: RunDraft,
    /// SHA-256 of `spec.json`, once the run may be sent to the device.
    pub(crate) spec_sha256: Option<String>,
    /// Whether the device has told a state of it.
    pub(crate) known: bool,
    /// Its state as last told.
    pub(crate) state: RunState,
    /// Why somebody wants it ended.
    pub(crate) abort: Option<String>,
    /// Whether the device no longer has it.
    pub(crate) lost: bool,
    /// When its record was written.
    pub(crate) recorded: Option<String>,
    /// What came of it.
    pub(crate) outcome: Option<RunOutcome>,
}

fn run(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        id: values::parsed(row, "id")?,
        device: values::parsed(row, "device")?,
        benchmark: row.get("benchmark")?,
        scenario: values::parsed(row, "scenario")?,
        mode: values::parsed(row, "mode")?,
        draft: values::json(row, "draft")?,
        spec_sha256: row.get("spec_sha256")?,
        known: row.get("known")?,
        state: RunState {
            phase: values::phase(row, "phase")?,
            reason: row.get("reason")?,
            revision: values::unsigned(row, "revision")?,
        },
        abort: row.get("abort")?,
        lost: row.get("lost")?,
        recorded: row.get("recorded")?,
        outcome: values::optional_json(row, "outcome")?,
    })
}

impl Store {
    /// One run.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn run(&self, id: RunId) -> Result<Option<RunRow>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT * FROM runs WHERE id = ?1")?;
        Ok(statement.query_row([id.to_string()], run).optional()?)
    }

    /// Every run, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn runs(&self) -> Result<Vec<RunRow>> {
        self.select_runs("SELECT * FROM runs ORDER BY id DESC")
    }

    /// Whether it knows any run.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn has_runs(&self) -> Result<bool> {
        Ok(self
            .connection
            .query_row("SELECT EXISTS (SELECT 1 FROM runs)", [], |row| row.get(0))?)
    }

    /// Runs without a record, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn open_runs(&self) -> Result<Vec<RunRow>> {
        self.select_runs("SELECT * FROM runs WHERE recorded IS NULL ORDER BY id")
    }

    /// Runs of which nothing more will come and which have no record yet: those that ended with every listed stream
    /// whole, and those that their device has lost.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn runs_to_record(&self) -> Result<Vec<RunRow>> {
        self.select_runs(
            "SELECT * FROM runs WHERE recorded IS NULL AND spec_sha256 IS NOT NULL AND (lost = 1 OR (
                 phase IN ('done', 'failed', 'aborted') AND NOT EXISTS (
                     SELECT 1 FROM streams WHERE run = runs.id AND listed = 1 AND whole = 0)))
             ORDER BY id",
        )
    }

    /// A device's recorded runs of a benchmark, newest first, at most a screenful: what rates are estimated from.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn recorded_runs_like(&self, draft: &RunDraft) -> Result<Vec<RunRow>> {
        let spec = &draft.spec;
        let mut statement = self.connection.prepare_cached(
            "SELECT * FROM runs WHERE device = ?1 AND benchmark = ?2 AND engine = ?3 AND recorded IS NOT NULL
             ORDER BY id DESC LIMIT 50",
        )?;
        let rows = statement.query_map(
            [
                spec.device.as_str(),
                &spec.benchmark.name,
                spec.engine.kind.as_str(),
            ],
            run,
        )?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn select_runs(&self, query: &str) -> Result<Vec<RunRow>> {
        let mut statement = self.connection.prepare_cached(query)?;
        let rows = statement.query_map([], run)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether a run's record is written.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn is_recorded(&self, id: RunId) -> Result<bool> {
        Ok(self
            .connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND recorded IS NOT NULL)")?
            .query_row([id.to_string()], |row| row.get(0))?)
    }

    /// Whose run it is, if its spec has been fixed: only such runs can be on a device.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn device_of_sent_run(&self, id: RunId) -> Result<Option<DeviceId>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT device FROM runs WHERE id = ?1 AND spec_sha256 IS NOT NULL")?;
        Ok(statement
            .query_row([id.to_string()], |row| values::parsed(row, "device"))
            .optional()?)
    }

    /// A device's open runs of which it has told a state: those that a complete list of its runs has to hold.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn known_open_runs(&self, device: &DeviceId) -> Result<Vec<RunId>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id FROM runs WHERE device = ?1 AND recorded IS NULL AND known = 1 AND lost = 0",
        )?;
        let rows = statement.query_map([device.as_str()], |row| values::parsed(row, "id"))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Runs that are recorded with every file and valid evidence, and whose device has not been told so, of devices that are there.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn runs_to_release(&self) -> Result<Vec<(RunId, DeviceId)>> {
        self.recorded_runs_where(
            "forgotten = 0 AND released = 0 AND json_extract(outcome, '$.complete') AND json_extract(outcome, '$.signed')",
            [],
        )
    }

    /// Runs recorded so many seconds of service ago that their device may forget and has not been told so, of devices that are there.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn runs_to_forget(&self, seconds: i64) -> Result<Vec<(RunId, DeviceId)>> {
        self.recorded_runs_where(
            "recorded_at <= ?1 AND known = 1 AND forgotten = 0 AND json_extract(outcome, '$.forgettable')",
            [self.served()?.saturating_sub(seconds)],
        )
    }

    fn recorded_runs_where(&self, condition: &str, params: impl Params) -> Result<Vec<(RunId, DeviceId)>> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT runs.id AS run, devices.id AS device FROM runs JOIN devices ON devices.id = runs.device
             WHERE recorded IS NOT NULL AND online = 1 AND running IS NULL AND {condition}"
        ))?;
        let rows = statement.query_map(params, |row| {
            Ok((values::parsed(row, "run")?, values::parsed(row, "device")?))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

impl RunRow {
    /// The phase as users see it: a run is done when its record is written, not before.
    pub(crate) fn shown_phase(&self) -> RunPhase {
        match self.state.phase {
            RunPhase::Done if self.recorded.is_none() => RunPhase::Draining,
            phase => phase,
        }
    }

    /// Whether it came to a result, and all that was to be found out about it was, and was good.
    pub(crate) fn is_good(&self) -> bool {
        let judged = |outcome: &RunOutcome| {
            let reached = outcome.accuracy.as_ref().is_none_or(AccuracyResult::is_reached);
            reached && outcome.not_judged.is_empty()
        };
        self.is_usable() && self.outcome.as_ref().is_some_and(judged)
    }

    /// Whether it came to a usable result, though its accuracy may be somebody else's to judge, as of benchmarks whose metric the
    /// reference's script reckons alone.
    pub(crate) fn is_usable(&self) -> bool {
        self.state.phase == RunPhase::Done
            && self.outcome.as_ref().is_some_and(|outcome| {
                outcome.complete
                    && outcome.signed == Some(true)
                    && outcome.has_passed(self.mode)
                    && outcome.audit.as_ref().is_none_or(|audit| audit.passed)
            })
    }

    /// The audit that it is.
    pub(crate) fn audit(&self) -> Option<&str> {
        self.draft.spec.audit.as_ref().map(|of| of.test.as_str())
    }

    /// Whether nothing more will happen to it.
    pub(crate) fn is_over(&self) -> bool {
        self.recorded.is_some()
    }
}
