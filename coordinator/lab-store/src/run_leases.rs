//! The leases of runs with a limit: the time that the device of a run has spent. The time is counted and not computed from clock times, so
//! that restarts and clock steps do not change it. `runs` counts it and ends runs.

use std::time::Duration;

use regatta_types::{
    RunId,
    documents::{RunPhase, end_reason},
};

use super::{Result, Runs, values};
use crate::database::params;

/// The lease of a run that its device has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLease {
    pub run: RunId,
    /// Whether its device is online.
    pub is_online: bool,
    pub phase: RunPhase,
    /// The limit, with the wait for its gate.
    pub limit: Duration,
    /// The time that is spent.
    pub spent: Duration,
    /// Whether its end was requested.
    pub is_ending: bool,
}

impl Runs<'_> {
    /// Returns the leases of the runs that were sent and have not ended on their device, or that it could not seal.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn leases(&self) -> Result<Vec<RunLease>> {
        self.store.rows(
            "SELECT runs.id AS run, phase, spent_ms, abort IS NOT NULL AS is_ending, coalesce(online, 0) AS
                 is_online, CAST(draft ->> 'limit_s' AS BIGINT) + coalesce(CAST(draft -> 'spec' -> 'gate' ->>
                 'wait_s' AS BIGINT), 0) AS limit_s FROM runs LEFT JOIN presence USING (device)
                 WHERE recorded IS NULL AND lost = 0 AND spec_sha256 IS NOT NULL AND (phase NOT IN ('done', 'failed',
                 'aborted') OR instr(reason, ?1) > 0) AND draft ->> 'limit_s' IS NOT NULL", params![end_reason::NOT_SEALED], |row| {
            Ok(RunLease {
                run: values::parsed(row, "run")?,
                is_online: row.get("is_online")?,
                phase: values::phase(row, "phase")?,
                limit: Duration::from_secs(values::unsigned(row, "limit_s")?),
                spent: Duration::from_millis(values::unsigned(row, "spent_ms")?),
                is_ending: row.get("is_ending")?,
            })
        })
    }

    /// Adds to the time that a run's device has spent.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add_spent_time(&self, run: RunId, time: Duration) -> Result<()> {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.store.execute(
            "UPDATE runs SET spent_ms = spent_ms + ?2 WHERE id = ?1",
            params![run.to_string(), values::signed(millis)],
        )?;
        Ok(())
    }
}
