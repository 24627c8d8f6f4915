//! Runs a page at a time, newest first: a list need not read every run.

use regatta_types::{DeviceId, RunId};

use super::{
    Result, RunRow, Runs,
    runs::{SELECT_RUNS, run},
};
use crate::database::params;

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
        // Ids have the same length, so an id occurs in the list only as an entry.
        let devices = selection.devices.as_ref().map(|devices| {
            let ids: Vec<&str> = devices.iter().map(DeviceId::as_str).collect();
            ids.join(" ")
        });
        self.store.rows(
            &format!(
                "{SELECT_RUNS} WHERE (?1 IS NULL OR runs.id < ?1) AND (?2 IS NULL OR benchmark = ?2) AND (?3 IS
                     NULL OR instr(?3, runs.device) > 0) ORDER BY runs.id DESC LIMIT ?4"
            ),
            params![
                selection.before.map(|run| run.to_string()),
                selection.benchmark,
                devices,
                i64::try_from(most).unwrap_or(i64::MAX),
            ],
            run,
        )
    }

    /// Returns the names of the benchmarks that have runs.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn benchmarks(&self) -> Result<Vec<String>> {
        self.store.rows(
            "SELECT DISTINCT benchmark FROM runs ORDER BY benchmark",
            params![],
            |row| row.get(0),
        )
    }
}
