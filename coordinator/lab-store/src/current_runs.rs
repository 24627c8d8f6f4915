//! The present activity of each device, without the drafts of queued runs: a page that shows many devices reads it every second.

use std::collections::BTreeMap;

use regatta_types::{DeviceId, RunId, documents::RunPhase};

use super::{Result, Runs, values};
use crate::database::params;

/// The run that a device executes or delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentRun {
    /// The run's id.
    pub id: RunId,
    /// The benchmark's name.
    pub benchmark: String,
    /// The scenario's name.
    pub scenario: String,
    /// The audit's name, the task unless it is a measurement, or the mode's name.
    pub mode: String,
    /// The phase for display: `Done` only once the record is written.
    pub phase: RunPhase,
    /// The time of the first message that LoadGen runs, RFC 3339 UTC.
    pub started: Option<String>,
    /// The time when the run was requested, RFC 3339 UTC.
    pub created: String,
}

impl Runs<'_> {
    /// Returns the oldest sent run without a record of each device that has one.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn current(&self) -> Result<BTreeMap<DeviceId, CurrentRun>> {
        let rows = self.store.rows(
            "SELECT id, device, benchmark, scenario, phase, started, created, coalesce(draft -> 'spec' -> 'audit'
                 ->> 'test', replace(draft -> 'spec' ->> 'task', '-', ' '), mode) AS mode
                 FROM runs WHERE recorded IS NULL AND spec_sha256 IS NOT NULL
                 ORDER BY id DESC", params![], |row| {
            let phase = values::phase(row, "phase")?;
            let run = CurrentRun {
                id: values::parsed(row, "id")?,
                benchmark: row.get("benchmark")?,
                scenario: row.get("scenario")?,
                mode: row.get("mode")?,
                phase: if phase == RunPhase::Done {
                    RunPhase::Draining
                } else {
                    phase
                },
                started: row.get("started")?,
                created: row.get("created")?,
            };
            Ok((values::parsed(row, "device")?, run))
        })?;
        // The newest come first, so the oldest of a device stays.
        Ok(rows)
    }

    /// Returns the number of waiting runs of each device that has any.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn count_queued(&self) -> Result<BTreeMap<DeviceId, u64>> {
        self.store.rows(
            "SELECT device, count(*) AS queued FROM runs WHERE recorded IS NULL AND spec_sha256 IS NULL GROUP BY
                 device", params![], |row| {
            Ok((values::parsed(row, "device")?, values::unsigned(row, "queued")?))
        })
    }
}
