//! Runs a page at a time, newest first: a list need not read every run.

use regatta_types::{DeviceId, RunId};
use rusqlite::params;

use super::{
    Result, RunRow, Runs,
    runs::{SELECT_RUNS, run},
};

/// The runs of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSelection {
    /// Only runs that were requested before this one.
    pub before: Option<RunId>,
    /// Only runs of these devices.
    pub devices: Option<Vec<DeviceId>>,
    /// Only runs of this benchmark.
    pub benchmark: Option<String>,
}

impl Runs<'_> {
    /// Returns up to `most` selected runs, newest first.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn page(&self, selection: &RunSelection, most: usize) -> Result<Vec<RunRow>> {
        let mut statement = self.store.connection.prepare_cached(&format!(
            "{SELECT_RUNS} WHERE (?1 IS NULL OR runs.id < ?1) AND (?2 IS NULL OR benchmark = ?2)
                 AND (?3 IS NULL OR runs.device IN (SELECT value FROM json_each(?3)))
             ORDER BY runs.id DESC LIMIT ?4"
        ))?;
        let devices = selection.devices.as_ref();
        let rows = statement.query_map(
            params![
                selection.before.map(|run| run.to_string()),
                selection.benchmark,
                devices.map(|devices| serde_json::json!(devices).to_string()),
                i64::try_from(most).unwrap_or(i64::MAX),
            ],
            run,
        )?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the names of the benchmarks that have runs.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn benchmarks(&self) -> Result<Vec<String>> {
        let mut statement = self
            .store
            .connection
            .prepare_cached("SELECT DISTINCT benchmark FROM runs ORDER BY benchmark")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
