//! Counters that only grow: numbers of commands and revocations, and the time that the coordinator has served.

use std::time::Duration;

use regatta_types::DeviceId;

use super::{Result, Service, Store, values};
use crate::database::params;

/// The highest command number that is accepted from a device. Microsecond time stays far below it, and enough numbers remain above it.
const HIGHEST_COMMAND: u64 = 1 << 62;

/// The counter of the seconds that coordinators have served.
const SERVED: &str = "served";

fn command_series(device: &DeviceId) -> String {
    format!("commands/{device}")
}

/// Series of numbers that keep growing across restarts.
#[derive(Debug)]
pub struct Numbers<'a> {
    pub(super) store: &'a Store,
}

impl Numbers<'_> {
    /// Returns the next number of a series.
    ///
    /// The number is never below the time in microseconds. The series therefore grows over restarts and when the clock is set back.
    ///
    /// A restored copy of the store together with a slow clock could repeat old numbers. [`Self::raise_commands_above`] raises the series
    /// above them.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn next(&self, series: &str) -> Result<u64> {
        let at_least = jiff::Timestamp::now().as_microsecond();
        let value: i64 = self.store.row(
            "INSERT INTO numbers (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE
                 SET value = CASE WHEN numbers.value >= ?2 THEN numbers.value + 1 ELSE ?2 END RETURNING value",
            params![series, at_least],
            |row| row.get(0),
        )?;
        Ok(u64::try_from(value).unwrap_or(0))
    }

    /// Returns the number of the next command to a device. Each device has its own series, so that no device can use up another's
    /// numbers.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn next_command(&self, device: &DeviceId) -> Result<u64> {
        self.next(&command_series(device))
    }

    /// Raises a device's command numbers above `number`, because the device obeys no command up to it. Returns whether they were below: the
    /// device has commands of a newer store, or of another lab.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn raise_commands_above(&self, device: &DeviceId, number: u64) -> Result<bool> {
        let raised = self.store.execute(
            "INSERT INTO numbers (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = ?2 WHERE numbers.value < ?2",
            params![
                command_series(device),
                values::signed(number.min(HIGHEST_COMMAND))
            ],
        )?;
        Ok(raised > 0 && number > 0)
    }
}

impl Service<'_> {
    /// Adds time of service. This clock does not follow steps of the wall clock, and stops while no coordinator serves.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add_time_served(&self, more: Duration) -> Result<()> {
        self.store.execute(
            "INSERT INTO numbers (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = numbers.value + ?2",
            params![SERVED, values::signed(more.as_secs())],
        )?;
        Ok(())
    }

    /// Returns the seconds that coordinators have served so far.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn seconds_served(&self) -> Result<i64> {
        Ok(self
            .store
            .optional(
                "SELECT value FROM numbers WHERE name = ?1",
                params![SERVED],
                |row| row.get(0),
            )?
            .unwrap_or(0))
    }
}
