//! Run rows: the request, the current state and the outcome of each run. `run_changes` has the statements that change them.

use regatta_types::{
    DeviceId, Mode, RunId, Scenario,
    documents::{AccuracyResult, RunPhase, RunState, end_reason},
};

use super::{
    Result, Store,
    run_draft::{RunDraft, RunOutcome},
    values,
};
use crate::database::{Row, Value, params};

/// The cell of a campaign that a run is an attempt of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignCell {
    pub campaign: String,
    pub cell: u64,
    /// The name of the cell's settings.
    pub variant: Option<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// The run's id.
    pub id: RunId,
    /// The device that runs it.
    pub device: DeviceId,
    /// The device's present name. `None` for a device that the store does not know.
    pub device_name: Option<String>,
    /// The benchmark's name.
    pub benchmark: String,
    pub scenario: Scenario,
    pub mode: Mode,
    /// The requested run.
    pub draft: RunDraft,
    /// SHA-256 of `spec.json`, once the spec is fixed and may be sent.
    pub spec_sha256: Option<String>,
    /// Whether the device has reported a state of the run.
    pub known: bool,
    /// The state that the device reported last.
    pub state: RunState,
    /// The time of the first message that LoadGen runs, RFC 3339 UTC.
    pub started: Option<String>,
    /// The reason of a requested abort.
    pub abort: Option<String>,
    /// The abort that the device of a given-up run must still confirm.
    pub pending_abort: Option<String>,
    /// The reason why a user gave up its missing files.
    pub abandoned: Option<String>,
    /// Whether the device no longer has it.
    pub lost: bool,
    /// The time when the run's record was written, RFC 3339 UTC.
    pub recorded: Option<String>,
    /// The outcome of a recorded run.
    pub outcome: Option<RunOutcome>,
    /// The campaign that requested it.
    pub campaign_cell: Option<CampaignCell>,
    /// A user's note.
    pub note: Option<String>,
}

/// Selects every column that [`run`] reads.
pub(super) const SELECT_RUNS: &str =
    "SELECT runs.*, coalesce((SELECT name FROM devices WHERE devices.id = runs.device),
         (SELECT name FROM members WHERE members.device = runs.device)) AS device_name,
     (SELECT attempts.campaign FROM attempts WHERE attempts.run = runs.id) AS of_campaign,
     (SELECT cell FROM attempts WHERE attempts.run = runs.id) AS of_cell,
     (SELECT variant FROM attempts JOIN cells ON cells.campaign = attempts.campaign AND cells.number = attempts.cell
         JOIN combinations ON combinations.campaign = attempts.campaign AND combinations.number = combination
         WHERE attempts.run = runs.id) AS of_variant FROM runs";

fn campaign_cell(row: &Row<'_>) -> Result<Option<CampaignCell>> {
    let Some(campaign) = row.get("of_campaign")? else {
        return Ok(None);
    };
    Ok(Some(CampaignCell {
        campaign,
        cell: values::unsigned(row, "of_cell")?,
        variant: row.get("of_variant")?,
    }))
}

/// Reads a row of [`SELECT_RUNS`].
pub(super) fn run(row: &Row<'_>) -> Result<RunRow> {
    Ok(RunRow {
        id: values::parsed(row, "id")?,
        device: values::parsed(row, "device")?,
        device_name: row.get("device_name")?,
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
        started: row.get("started")?,
        abort: row.get("abort")?,
        pending_abort: row.get("pending_abort")?,
        abandoned: row.get("abandoned")?,
        lost: row.get("lost")?,
        recorded: row.get("recorded")?,
        outcome: values::optional_json(row, "outcome")?,
        campaign_cell: campaign_cell(row)?,
        note: row.get("note")?,
    })
}

#[derive(Debug)]
pub struct Runs<'a> {
    pub(super) store: &'a Store,
}

impl Runs<'_> {
    /// Returns one run.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn get(&self, id: RunId) -> Result<Option<RunRow>> {
        self.store.optional(
            &format!("{SELECT_RUNS} WHERE id = ?1"),
            params![id.to_string()],
            run,
        )
    }

    /// Returns every run, newest first.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn all(&self) -> Result<Vec<RunRow>> {
        self.select("ORDER BY id DESC")
    }

    /// Returns the run that was requested last.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn newest(&self) -> Result<Option<RunRow>> {
        let newest =
            self.store
                .optional("SELECT id FROM runs ORDER BY id DESC LIMIT 1", params![], |row| {
                    values::parsed(row, "id")
                })?;
        newest.map_or(Ok(None), |id| self.get(id))
    }

    /// Returns the runs that were requested after another one, oldest first.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn requested_after(&self, id: RunId) -> Result<Vec<RunRow>> {
        self.store.rows(
            &format!("{SELECT_RUNS} WHERE id > ?1 ORDER BY id"),
            params![id.to_string()],
            run,
        )
    }

    /// Returns whether the store has any run.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn has_any(&self) -> Result<bool> {
        self.store
            .row("SELECT EXISTS (SELECT 1 FROM runs)", params![], |row| row.get(0))
    }

    /// Returns the runs without a record, oldest first.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn open(&self) -> Result<Vec<RunRow>> {
        self.select("WHERE recorded IS NULL ORDER BY id")
    }

    /// Returns the failed runs that their devices could not seal, so that files are missing.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn unsealed(&self) -> Result<Vec<RunRow>> {
        self.store.rows(
            &format!(
                "{SELECT_RUNS} WHERE recorded IS NULL AND phase = 'failed' AND instr(reason, ?1) > 0
                     ORDER BY id"
            ),
            params![end_reason::NOT_SEALED],
            run,
        )
    }

    /// Returns the runs that are ready to be recorded. Either they ended and every listed stream is complete, or their device has lost
    /// them.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn recordable(&self) -> Result<Vec<RunRow>> {
        self.select(
            "WHERE recorded IS NULL AND spec_sha256 IS NOT NULL AND (lost = 1 OR (
                 NOT EXISTS (SELECT 1 FROM streams WHERE run = runs.id AND listed = 1 AND complete = 0)
                 AND (phase IN ('done', 'failed', 'aborted') OR 2 = (SELECT count(*) FROM streams
                     WHERE run = runs.id AND complete = 1 AND name IN ('evidence.json', 'evidence.sig')))))
             ORDER BY id",
        )
    }

    /// Returns up to 50 recorded runs of the same device, benchmark and engine, newest first. Rates are estimated from them.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn recorded_like(&self, draft: &RunDraft) -> Result<Vec<RunRow>> {
        let spec = &draft.spec;
        self.store.rows(
            &format!(
                "{SELECT_RUNS} WHERE device = ?1 AND benchmark = ?2 AND engine = ?3 AND recorded IS NOT NULL
                 ORDER BY id DESC LIMIT 50",
            ),
            params![
                spec.device.as_str(),
                &spec.benchmark.name,
                spec.engine.kind.as_str(),
            ],
            run,
        )
    }

    fn select(&self, clauses: &str) -> Result<Vec<RunRow>> {
        self.store
            .rows(&format!("{SELECT_RUNS} {clauses}"), params![], run)
    }

    /// Returns whether a run's record is written.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn is_recorded(&self, id: RunId) -> Result<bool> {
        self.store.row(
            "SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND recorded IS NOT NULL)",
            params![id.to_string()],
            |row| row.get(0),
        )
    }

    /// Returns the device of a run whose spec is fixed. Only such runs can be on a device.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn device_of_sent(&self, id: RunId) -> Result<Option<DeviceId>> {
        self.store.optional(
            "SELECT device FROM runs WHERE id = ?1 AND spec_sha256 IS NOT NULL",
            params![id.to_string()],
            |row| values::parsed(row, "device"),
        )
    }

    /// Returns a device's open runs of which it has reported a state. A complete inventory of the device must contain them.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn known_open(&self, device: &DeviceId) -> Result<Vec<RunId>> {
        self.store.rows(
            "SELECT id FROM runs WHERE device = ?1 AND recorded IS NULL AND known = 1 AND lost = 0",
            params![device.as_str()],
            |row| values::parsed(row, "id"),
        )
    }

    /// Returns recorded runs with every file and valid evidence whose device has not been sent `Release` yet. The device is online and
    /// not in a timed window.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn releasable(&self) -> Result<Vec<(RunId, DeviceId)>> {
        self.recorded_where(
            "forgotten = 0 AND released = 0 AND CAST(outcome -> 'complete' AS TEXT) = 'true' AND CAST(outcome -> 'signed' AS TEXT) = 'true'",
            params![],
        )
    }

    /// Returns runs that their device may forget and has not been sent `Forget` for. They were recorded at least `seconds` of service
    /// ago. The device is online and not in a timed window.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn forgettable(&self, seconds: i64) -> Result<Vec<(RunId, DeviceId)>> {
        self.recorded_where(
            "recorded_at <= ?1 AND known = 1 AND forgotten = 0 AND CAST(outcome -> 'forgettable' AS TEXT) = 'true'",
            params![self.store.service().seconds_served()?.saturating_sub(seconds)],
        )
    }

    fn recorded_where(&self, condition: &str, params: &[Value<'_>]) -> Result<Vec<(RunId, DeviceId)>> {
        self.store.rows(
            &format!(
                "SELECT id AS run, device FROM runs JOIN presence USING (device)
                 WHERE recorded IS NOT NULL AND online = 1 AND running IS NULL AND {condition}"
            ),
            params,
            |row| Ok((values::parsed(row, "run")?, values::parsed(row, "device")?)),
        )
    }
}

impl RunRow {
    /// Returns the phase for display. A run is `Done` only once its record is written.
    pub fn shown_phase(&self) -> RunPhase {
        match self.state.phase {
            RunPhase::Done if self.recorded.is_none() => RunPhase::Draining,
            phase => phase,
        }
    }

    /// Returns whether the run is usable, its accuracy target is reached and everything was judged.
    pub fn is_good(&self) -> bool {
        let judged = |outcome: &RunOutcome| {
            let reached = outcome.accuracy.as_ref().is_none_or(AccuracyResult::is_reached);
            reached && outcome.not_judged.is_empty()
        };
        self.is_usable() && self.outcome.as_ref().is_some_and(judged)
    }

    /// Returns whether the run has a usable result. Its accuracy may still need judging, for benchmarks whose metric only the reference
    /// script computes.
    pub fn is_usable(&self) -> bool {
        self.state.phase == RunPhase::Done
            && self.outcome.as_ref().is_some_and(|outcome| {
                outcome.complete
                    && outcome.signed == Some(true)
                    && outcome.has_passed(self.expects_verdict())
                    && outcome.audit.as_ref().is_none_or(|audit| audit.passed)
            })
    }

    /// Returns whether LoadGen gives the finished run a verdict.
    pub fn expects_verdict(&self) -> bool {
        self.draft.spec.task.is_measurement() && self.mode.has_verdict()
    }

    /// Returns the audit's name, if the run is an audit.
    pub fn audit(&self) -> Option<&str> {
        self.draft.spec.audit.as_ref().map(|of| of.test.as_str())
    }

    /// Returns whether the run is recorded without files that its device had.
    pub fn has_undelivered_files(&self) -> bool {
        let outcome = self.outcome.as_ref();
        outcome.is_some_and(|outcome| !outcome.complete && !outcome.forgettable)
    }

    /// Returns whether the device keeps its copy of the recorded run when the run is removed here. It only forgets a run whose files are
    /// all here with a valid signature, or of which it never had a file.
    pub fn stays_on_device(&self) -> bool {
        self.outcome.as_ref().is_some_and(|outcome| !outcome.forgettable)
    }

    /// Returns whether its device has failed the run and could not seal it yet, so that it is not recorded.
    pub fn is_unsealed(&self) -> bool {
        let reason = self.state.reason.as_deref().unwrap_or_default();
        !self.is_over() && self.state.phase == RunPhase::Failed && reason.contains(end_reason::NOT_SEALED)
    }

    /// Returns whether the run may be removed: it is over, and its device need not abort it any more.
    pub fn is_removable(&self) -> bool {
        self.is_over() && self.pending_abort.is_none()
    }

    /// Returns whether the run is recorded and therefore final.
    pub fn is_over(&self) -> bool {
        self.recorded.is_some()
    }
}
