//! Numbers that only grow: those of commands and revocations, and the time for which this coordinator has served.

use std::time::Duration;

use regatta_types::DeviceId;
use rusqlite::{OptionalExtension as _, params};

use super::{Result, Store, values};

/// The highest number of a command that a device is believed to have heard: no coordinator comes near in microseconds, and there are
/// numbers enough above it.
const HIGHEST_COMMAND: u64 = 1 << 62;

/// The series that counts the seconds for which a coordinator has served.
const SERVED: &str = "served";

fn command_series(device: &DeviceId) -> String {
    format!("commands/{device}")
}

impl Store {
    /// The next of a series of numbers. It only grows, also over restarts, and also when the clock is set back, because it is never
    /// below the time in microseconds. After a restored copy of the store and with a clock that is behind, a series goes on above
    /// its old numbers once somebody says what those were ([`Self::commands_are_above`]).
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn next_number(&self, series: &str) -> Result<u64> {
        let at_least = jiff::Timestamp::now().as_microsecond();
        let value: i64 = self
            .connection
            .prepare_cached(
                "INSERT INTO numbers (name, value) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET value = max(value + 1, ?2) RETURNING value",
            )?
            .query_row(params![series, at_least], |row| row.get(0))?;
        Ok(u64::try_from(value).unwrap_or(0))
    }

    /// The number of the next command to a device. Each device has a series of its own, so that none can use up the others' numbers.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn next_command(&self, device: &DeviceId) -> Result<u64> {
        self.next_number(&command_series(device))
    }

    /// A device obeys no command up to this number.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn commands_are_above(&self, device: &DeviceId, number: u64) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO numbers (name, value) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET value = ?2 WHERE value < ?2",
            )?
            .execute(params![
                command_series(device),
                values::signed(number.min(HIGHEST_COMMAND))
            ])?;
        Ok(())
    }

    /// Counts more time of service: a clock that no step of the wall clock moves. It stands still while no coordinator serves.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn has_served(&self, more: Duration) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO numbers (name, value) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET value = value + ?2",
            )?
            .execute(params![SERVED, values::signed(more.as_secs())])?;
        Ok(())
    }

    /// Seconds for which coordinators have served so far.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn served(&self) -> Result<i64> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT value FROM numbers WHERE name = ?1")?;
        Ok(statement
            .query_row([SERVED], |row| row.get(0))
            .optional()?
            .unwrap_or(0))
    }
}
