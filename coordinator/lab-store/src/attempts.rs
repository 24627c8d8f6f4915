//! The attempts at cells: append-only. An attempt is one ordinary run or a power session, and has exactly one cause if it failed.
//!
//! The attempt and its run are stored together. Unique indexes refuse a second open attempt of a cell or on a device.

use std::collections::BTreeSet;

use regatta_types::{DeviceId, RunId, documents::EndCause};

use super::{CampaignState, CellState, Result, RunDraft, Store, values};
use crate::database::{Row, params};

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRow {
    pub campaign: String,
    pub cell: u64,
    /// Its number in the cell, from 1.
    pub number: u64,
    pub device: DeviceId,
    /// The run. `None` when none could be requested, and of a power session that has no testing run yet.
    pub run: Option<RunId>,
    /// The power session.
    pub session: Option<String>,
    /// The time when it was requested.
    pub requested: String,
    /// The time when it ended.
    pub ended: Option<String>,
    /// The reason why it failed; of an open one, why it is being ended.
    pub cause: Option<EndCause>,
    /// The same as a sentence.
    pub reason: Option<String>,
    /// Whether its run has a record, or is no longer in the store. `false` of a power session.
    pub is_run_over: bool,
}

/// An attempt that begins.
#[derive(Debug, Clone, Copy)]
pub struct NewAttempt<'a> {
    pub campaign: &'a str,
    pub cell: u64,
    pub device: &'a DeviceId,
    /// The current time.
    pub now: &'a str,
}

/// The work of an attempt.
#[derive(Debug, Clone, Copy)]
pub enum AttemptWork<'a> {
    Run(&'a RunDraft),
    /// A power session with this id, which requests its runs itself.
    Session(&'a str),
}

/// The end of an attempt.
#[derive(Debug, Clone, Copy)]
pub struct AttemptEnd<'a> {
    /// The cause of its failure. `None` of a good one.
    pub cause: Option<EndCause>,
    /// The same as a sentence.
    pub reason: Option<&'a str>,
    /// Whether the cell waits for another attempt.
    pub is_tried_again: bool,
    /// The testing run of a power session.
    pub run: Option<RunId>,
    /// The current time.
    pub now: &'a str,
}

impl AttemptEnd<'_> {
    /// Returns the state of the cell after this attempt.
    const fn cell_state(&self) -> CellState {
        match (self.cause, self.is_tried_again) {
            (None, _) => CellState::Good,
            (Some(_), true) => CellState::Waiting,
            (Some(_), false) => CellState::Failed,
        }
    }
}

/// Selects every column that [`attempt`] reads.
const SELECT_ATTEMPTS: &str = "SELECT attempts.*, session IS NULL AND NOT EXISTS (
         SELECT 1 FROM runs WHERE runs.id = attempts.run AND runs.recorded IS NULL) AS is_run_over FROM attempts";

fn attempt(row: &Row<'_>) -> Result<AttemptRow> {
    Ok(AttemptRow {
        campaign: row.get("campaign")?,
        cell: values::unsigned(row, "cell")?,
        number: values::unsigned(row, "number")?,
        device: values::parsed(row, "device")?,
        run: values::optional_parsed(row, "run")?,
        session: row.get("session")?,
        requested: row.get("requested")?,
        ended: row.get("ended")?,
        cause: values::optional_parsed(row, "cause")?,
        reason: row.get("reason")?,
        is_run_over: row.get("is_run_over")?,
    })
}

/// The attempts to run the cells of campaigns.
#[derive(Debug)]
pub struct Attempts<'a> {
    pub(super) store: &'a Store,
}

impl Attempts<'_> {
    /// Returns the attempts of a campaign, by cell and number.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn of_campaign(&self, campaign: &str) -> Result<Vec<AttemptRow>> {
        self.store.rows(
            &format!("{SELECT_ATTEMPTS} WHERE campaign = ?1 ORDER BY cell, number"),
            params![campaign],
            attempt,
        )
    }

    /// Returns the attempts of the cells that changed after a revision, by cell and number. `None` selects every cell.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn of_changed_cells(&self, campaign: &str, after: Option<u64>) -> Result<Vec<AttemptRow>> {
        let Some(after) = after else {
            return self.of_campaign(campaign);
        };
        self.store.rows(
            &format!(
                "{SELECT_ATTEMPTS} WHERE campaign = ?1 AND cell IN (
                 SELECT cells.number FROM cells WHERE cells.campaign = ?1 AND cells.revision > ?2) ORDER BY cell, number"
            ),
            params![campaign, values::signed(after)],
            attempt,
        )
    }

    /// Returns the attempts of a cell since a user last requested more of them, by number.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn counted(&self, campaign: &str, cell: u64) -> Result<Vec<AttemptRow>> {
        self.store.rows(
            &format!(
                "{SELECT_ATTEMPTS} WHERE campaign = ?1 AND cell = ?2 AND number > (
                 SELECT counted_from FROM cells WHERE cells.campaign = ?1 AND cells.number = ?2) ORDER BY number"
            ),
            params![campaign, values::signed(cell)],
            attempt,
        )
    }

    /// Returns the open attempts of all campaigns.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn open(&self) -> Result<Vec<AttemptRow>> {
        self.store.rows(
            &format!("{SELECT_ATTEMPTS} WHERE ended IS NULL ORDER BY campaign, cell"),
            params![],
            attempt,
        )
    }

    /// Returns the devices that have a run without a record, an open attempt or a power session, or that must still abort a run.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn busy_devices(&self) -> Result<BTreeSet<DeviceId>> {
        let rows = self.store.rows(
            "SELECT device FROM runs WHERE recorded IS NULL UNION SELECT device FROM runs WHERE pending_abort IS NOT NULL
             UNION SELECT device FROM attempts WHERE ended IS NULL",
            params![],
            |row| values::parsed(row, "device"),
        )?;
        let mut busy: BTreeSet<DeviceId> = rows;
        busy.extend(self.store.meters().measured_devices()?);
        Ok(busy)
    }

    /// Begins an attempt and requests its run, if it is one, both or neither. Returns `false` when a user has changed the campaign, or requested a run
    /// or a power session of the device meanwhile.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn begin(&self, new: NewAttempt<'_>, work: AttemptWork<'_>) -> Result<bool> {
        self.store.all_or_nothing(|store| {
            let is_possible: bool = store.row(
                "SELECT EXISTS (SELECT 1 FROM campaigns JOIN cells ON cells.campaign = campaigns.name
                     WHERE name = ?1 AND campaigns.state = ?4 AND campaigns.ended IS NULL AND cells.number = ?2 AND cells.state = ?5)
                 AND NOT EXISTS (SELECT 1 FROM attempts WHERE ended IS NULL AND (device = ?3 OR (campaign = ?1 AND cell = ?2)))
                 AND NOT EXISTS (SELECT 1 FROM device_health WHERE device = ?3 AND (verdict = 'quarantined' OR drained IS NOT NULL))
                 AND NOT EXISTS (SELECT 1 FROM runs WHERE device = ?3 AND (recorded IS NULL OR pending_abort IS NOT NULL))", params![
                        new.campaign,
                        values::signed(new.cell),
                        new.device.as_str(),
                        CampaignState::Running.as_str(),
                        CellState::Waiting.as_str()
                    ], |row| row.get(0))?;
            let is_possible = is_possible && store.meters().leased_device(new.device)?.is_none();
            if is_possible {
                match work {
                    AttemptWork::Run(draft) => {
                        store.attempts().insert(new, Some(draft.spec.run), None)?;
                        store.runs().add(draft)?;
                    }
                    AttemptWork::Session(session) => {
                        store.attempts().insert(new, None, Some(session))?;
                    }
                }
                store.campaigns().mark_cell_changed(new.campaign, new.cell)?;
            }
            Ok(is_possible)
        })
    }

    /// Stores an attempt for which no run could be requested, unless the cell or the device has an open one.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn refuse(&self, new: NewAttempt<'_>, end: AttemptEnd<'_>) -> Result<()> {
        self.store.all_or_nothing(|store| {
            let is_open: bool = store.row(
                "SELECT EXISTS (SELECT 1 FROM attempts
                 WHERE ended IS NULL AND (device = ?3 OR (campaign = ?1 AND cell = ?2)))",
                params![new.campaign, values::signed(new.cell), new.device.as_str()],
                |row| row.get(0),
            )?;
            if is_open {
                return Ok(());
            }
            let number = store.attempts().insert(new, None, None)?;
            store.attempts().close(new.campaign, new.cell, number, end)
        })
    }

    fn insert(&self, new: NewAttempt<'_>, run: Option<RunId>, session: Option<&str>) -> Result<u64> {
        let number = self.store.row(
            "INSERT INTO attempts (campaign, cell, number, device, run, requested, session)
             SELECT ?1, ?2, coalesce(max(number), 0) + 1, ?3, ?4, ?5, ?6 FROM attempts WHERE campaign = ?1 AND cell = ?2
             RETURNING number",
            params![
                new.campaign,
                values::signed(new.cell),
                new.device.as_str(),
                run.map(|run| run.to_string()),
                new.now,
                session
            ],
            |row| values::unsigned(row, "number"),
        )?;
        Ok(number)
    }

    /// Ends an attempt, and sets the state of its cell.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn end(&self, attempt: &AttemptRow, end: AttemptEnd<'_>) -> Result<()> {
        self.store.all_or_nothing(|store| {
            store
                .attempts()
                .close(&attempt.campaign, attempt.cell, attempt.number, end)
        })
    }

    fn close(&self, campaign: &str, cell: u64, number: u64, end: AttemptEnd<'_>) -> Result<()> {
        self.store.execute(
            "UPDATE attempts SET ended = ?4, cause = ?5, reason = ?6, run = coalesce(run, ?7) WHERE campaign = ?1 AND cell = ?2 AND number = ?3
             AND ended IS NULL",
            params![
                campaign,
                values::signed(cell),
                values::signed(number),
                end.now,
                end.cause.map(EndCause::as_str),
                end.reason,
                end.run.map(|run| run.to_string())
            ],
        )?;
        let state = end.cell_state();
        let (cause, reason) = match state {
            CellState::Failed => (end.cause, end.reason),
            _ => (None, None),
        };
        self.store
            .cells()
            .set_state(campaign, cell, state, cause, reason)?;
        self.store.campaigns().mark_cell_changed(campaign, cell)
    }

    /// Ends an open attempt's run that was not sent to its device yet. Returns `false` when it was sent, or is over.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn withdraw_unsent_run(&self, attempt: &AttemptRow, cause: EndCause, reason: &str) -> Result<bool> {
        self.store.all_or_nothing(|store| {
            let run = attempt.run.map_or(Ok(None), |run| store.runs().get(run))?;
            let is_unsent = run.is_some_and(|row| row.spec_sha256.is_none());
            Ok(is_unsent
                && store
                    .attempts()
                    .end_run_in_transaction(attempt, cause, reason, false)?)
        })
    }

    /// Requests the end of an open attempt's run, and keeps why. With `gives_up` a run that was sent is recorded with the files that have
    /// arrived, also after its device was requested to abort it; otherwise its device aborts it. The first cause counts. Returns `false`
    /// when the run is over, or this end was requested before.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn end_run(
        &self,
        attempt: &AttemptRow,
        cause: EndCause,
        reason: &str,
        gives_up: bool,
    ) -> Result<bool> {
        self.store.all_or_nothing(|store| {
            store
                .attempts()
                .end_run_in_transaction(attempt, cause, reason, gives_up)
        })
    }

    /// Does the same as [`Self::end_run`], in the caller's transaction.
    fn end_run_in_transaction(
        &self,
        attempt: &AttemptRow,
        cause: EndCause,
        reason: &str,
        gives_up: bool,
    ) -> Result<bool> {
        let is_first = attempt.cause.is_none();
        let Some(run) = attempt.run.filter(|_| is_first || gives_up) else {
            return Ok(false);
        };
        let is_kept = self
            .store
            .runs()
            .get(run)?
            .is_some_and(|row| row.abandoned.is_none());
        let is_ending = (gives_up && is_kept && self.store.runs().give_up(run, reason)?)
            || (is_first && self.store.runs().request_abort(run, reason)?);
        if is_ending {
            self.store.execute(
                "UPDATE attempts SET cause = coalesce(cause, ?4), reason = coalesce(reason, ?5)
                 WHERE campaign = ?1 AND cell = ?2 AND number = ?3 AND ended IS NULL",
                params![
                    attempt.campaign,
                    values::signed(attempt.cell),
                    values::signed(attempt.number),
                    cause.as_str(),
                    reason
                ],
            )?;
            self.store
                .campaigns()
                .mark_cell_changed(&attempt.campaign, attempt.cell)?;
        }
        Ok(is_ending)
    }
}
