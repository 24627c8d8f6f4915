//! Numbers of runs, attempts and changes of health, for monitoring. They are counted by the database, without reading a run.

use super::{Attempts, Health, Result, Runs, Store};
use crate::database::params;

impl Runs<'_> {
    /// Returns the number of recorded runs by verdict: `valid`, `invalid`, or without one `done`, `failed` or `aborted`.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn count_recorded(&self) -> Result<Vec<(String, u64)>> {
        self.store.count(
            "SELECT CASE CAST(outcome -> 'valid' AS TEXT) WHEN 'true' THEN 'valid' WHEN 'false' THEN 'invalid' ELSE phase END AS word, count(*)
             FROM runs WHERE recorded IS NOT NULL GROUP BY word ORDER BY word",
        )
    }

    /// Returns the number of runs without a record by phase. `waiting` ones were not sent to their device yet.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn count_open(&self) -> Result<Vec<(String, u64)>> {
        self.store.count(
            "SELECT CASE WHEN spec_sha256 IS NULL THEN 'waiting' WHEN phase = 'done' THEN 'draining' ELSE phase END AS word, count(*)
             FROM runs WHERE recorded IS NULL GROUP BY word ORDER BY word",
        )
    }
}

impl Attempts<'_> {
    /// Returns the number of all campaigns' attempts by cause, and `good` without one. Attempts are only added, so these numbers only grow.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn count_ended(&self) -> Result<Vec<(String, u64)>> {
        self.store.count(
            "SELECT coalesce(cause, 'good') AS word, count(*) FROM attempts WHERE ended IS NOT NULL GROUP BY word ORDER BY word",
        )
    }
}

impl Health<'_> {
    /// Returns the number of times that devices came into each health. The log is only added to, so these numbers only grow.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn count_changes(&self) -> Result<Vec<(String, u64)>> {
        self.store
            .count("SELECT health, count(*) FROM device_log GROUP BY health ORDER BY health")
    }
}

impl Store {
    fn count(&self, query: &str) -> Result<Vec<(String, u64)>> {
        self.rows(query, params![], |row| {
            let count: i64 = row.get(1)?;
            Ok((row.get(0)?, u64::try_from(count).unwrap_or(0)))
        })
    }
}
