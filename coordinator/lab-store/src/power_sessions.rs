//! Power sessions: every attempt with its meter, its two runs and its end. Failed attempts stay.

use regatta_types::{
    RunId,
    documents::{EndCause, PowerVerdict, RecordedFailure},
};

use super::{Result, Store, now, values};
use crate::database::{Row, ToValue, params};

/// A power session.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerSessionRow {
    /// Its id, which is also the name of its directory. Sorts by time.
    pub id: String,
    pub meter: String,
    pub device: String,
    pub benchmark: String,
    pub scenario: String,
    /// The time when it began.
    pub begun: String,
    /// The time when it ended.
    pub ended: Option<String>,
    /// The ranging run, once it was requested.
    pub ranging: Option<RunId>,
    /// The testing run, once it was requested.
    pub testing: Option<RunId>,
    /// The verdict on a complete session.
    pub verdict: Option<PowerVerdict>,
    /// Why it is not complete.
    pub failure: Option<RecordedFailure>,
    /// Whether PTDaemon was a simulated one. `None` when it did not report what it is.
    pub simulated: Option<bool>,
    /// The reasons why its runs cannot be submitted, one sentence each.
    pub obstacles: Vec<String>,
    /// Its newest step, in words.
    pub step: Option<String>,
    /// The newest mean of ten seconds in watts.
    pub watts: Option<f64>,
    /// The newest observation beside it, such as a clock's step.
    pub observation: Option<String>,
}

/// A change of a running session.
#[derive(Debug, Clone, Copy)]
pub enum PowerSessionChange<'a> {
    /// The session entered a step.
    Step(&'a str),
    /// The mean of the newest samples.
    Watts(f64),
    /// Something was observed beside it.
    Observation(&'a str),
}

/// The end of a session.
#[derive(Debug, Clone, Copy, Default)]
pub struct PowerSessionEnd<'a> {
    /// The verdict on a complete session.
    pub verdict: Option<PowerVerdict>,
    /// Why it is not complete.
    pub failure: Option<&'a RecordedFailure>,
    /// Whether PTDaemon was a simulated one.
    pub simulated: Option<bool>,
    /// The reasons why its runs cannot be submitted.
    pub obstacles: &'a [String],
    /// The meter's mean in the testing run's window, in watts.
    pub mean_watts: Option<f64>,
}

/// A session that begins.
#[derive(Debug, Clone, Copy)]
pub struct NewPowerSession<'a> {
    pub id: &'a str,
    pub meter: &'a str,
    pub device: &'a str,
    pub benchmark: &'a str,
    pub scenario: &'a str,
}

impl PowerSessionRow {
    /// Returns the reason why it is not complete.
    pub fn reason(&self) -> Option<&str> {
        self.failure.as_ref().map(|failure| failure.reason.as_str())
    }
}

fn failure(row: &Row<'_>) -> Result<Option<RecordedFailure>> {
    let reason: Option<String> = row.get("reason")?;
    let Some(reason) = reason else { return Ok(None) };
    let cause = values::optional_parsed(row, "cause")?.unwrap_or(EndCause::Infrastructure);
    Ok(Some(RecordedFailure { cause, reason }))
}

fn session(row: &Row<'_>) -> Result<PowerSessionRow> {
    Ok(PowerSessionRow {
        id: row.get("id")?,
        meter: row.get("meter")?,
        device: row.get("device")?,
        benchmark: row.get("benchmark")?,
        scenario: row.get("scenario")?,
        begun: row.get("begun")?,
        ended: row.get("ended")?,
        ranging: values::optional_parsed(row, "ranging")?,
        testing: values::optional_parsed(row, "testing")?,
        verdict: values::optional_parsed(row, "verdict")?,
        failure: failure(row)?,
        simulated: row.get("simulated")?,
        obstacles: values::json(row, "obstacles")?,
        step: row.get("step")?,
        watts: row.get("watts")?,
        observation: row.get("observation")?,
    })
}

#[derive(Debug)]
pub struct PowerSessions<'a> {
    pub(super) store: &'a Store,
}

impl PowerSessions<'_> {
    /// Stores that a session begins.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn begin(&self, new: NewPowerSession<'_>) -> Result<()> {
        self.store.execute(
            "INSERT INTO power_sessions (id, meter, device, benchmark, scenario, begun)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![new.id, new.meter, new.device, new.benchmark, new.scenario, now()],
        )?;
        Ok(())
    }

    /// Links a session with its ranging or testing run.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn set_run(&self, id: &str, is_ranging: bool, run: RunId) -> Result<()> {
        let column = if is_ranging { "ranging" } else { "testing" };
        self.store.execute(
            &format!("UPDATE power_sessions SET {column} = ?2 WHERE id = ?1"),
            params![id, run.to_string()],
        )?;
        Ok(())
    }

    /// Stores a change of a running session.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record_change(&self, id: &str, change: PowerSessionChange<'_>) -> Result<()> {
        let (column, value): (_, &dyn ToValue) = match &change {
            PowerSessionChange::Step(step) => ("step", step),
            PowerSessionChange::Watts(watts) => ("watts", watts),
            PowerSessionChange::Observation(text) => ("observation", text),
        };
        self.store.execute(
            &format!("UPDATE power_sessions SET {column} = ?2 WHERE id = ?1 AND ended IS NULL"),
            params![id, value],
        )?;
        Ok(())
    }

    /// Stores the end of a session: a verdict, or the reason why it has none.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn end(&self, id: &str, end: &PowerSessionEnd<'_>) -> Result<()> {
        let obstacles = values::to_json(&end.obstacles)?;
        self.store.execute(
            "UPDATE power_sessions SET ended = ?2, verdict = ?3, reason = ?4, cause = ?5, simulated = ?6, obstacles = ?7, mean_watts = ?8
             WHERE id = ?1 AND ended IS NULL",
            params![
                id,
                now(),
                end.verdict.map(PowerVerdict::as_str),
                end.failure.map(|failure| &failure.reason),
                end.failure.map(|failure| failure.cause.as_str()),
                end.simulated,
                obstacles,
                end.mean_watts
            ],
        )?;
        Ok(())
    }

    /// Stores that a session has failed without a result, and requests the end of its runs.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn fail(&self, id: &str, failure: &RecordedFailure) -> Result<()> {
        let end = PowerSessionEnd {
            failure: Some(failure),
            ..PowerSessionEnd::default()
        };
        self.end(id, &end)?;
        if let Some(row) = self.get(id)? {
            for run in [row.ranging, row.testing].into_iter().flatten() {
                self.store
                    .runs()
                    .request_abort(run, "its power session has failed")?;
            }
        }
        Ok(())
    }

    /// Stores the verdict on a session that had ended without one, because its files could not be fetched.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn record_fetched(&self, id: &str, end: &PowerSessionEnd<'_>) -> Result<()> {
        self.store.execute(
            "UPDATE power_sessions SET verdict = ?2, reason = NULL, cause = NULL, simulated = ?3, mean_watts = ?4
             WHERE id = ?1 AND ended IS NOT NULL AND verdict IS NULL", params![
                id,
                end.verdict.map(PowerVerdict::as_str),
                end.simulated,
                end.mean_watts
            ])?;
        Ok(())
    }

    /// Returns one session.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn get(&self, id: &str) -> Result<Option<PowerSessionRow>> {
        self.store
            .optional("SELECT * FROM power_sessions WHERE id = ?1", params![id], session)
    }

    /// Returns every session, newest first.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn all(&self) -> Result<Vec<PowerSessionRow>> {
        self.store.rows(
            "SELECT * FROM power_sessions ORDER BY id DESC",
            params![],
            session,
        )
    }
}
