//! Checks of devices: the short known runs, and their results. Later checks compare with earlier ones.

use regatta_types::{DeviceId, RunId};

use super::{Result, Store, now};
use crate::database::params;

/// A check of a device.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceCheck {
    pub benchmark: String,
    pub engine: String,
    pub accuracy_run: RunId,
    pub performance_run: RunId,
    /// The accuracy in percent.
    pub accuracy: Option<f64>,
    /// The speed in samples per second.
    pub samples_per_second: Option<f64>,
    /// The reason why the check failed. `None` when it passed.
    pub failure: Option<String>,
    /// The user who requested it.
    pub by: String,
}

#[derive(Debug)]
pub struct DeviceChecks<'a> {
    pub(super) store: &'a Store,
}

impl DeviceChecks<'_> {
    /// Stores a check.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn add(&self, device: &DeviceId, check: &DeviceCheck) -> Result<()> {
        self.store.execute(
            "INSERT INTO device_checks (device, at, benchmark, engine, accuracy_run, performance_run, accuracy,
                 samples_per_second, failure, checked_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)", params![
                device.as_str(),
                now(),
                check.benchmark,
                check.engine,
                check.accuracy_run.to_string(),
                check.performance_run.to_string(),
                check.accuracy,
                check.samples_per_second,
                check.failure,
                check.by,
            ])?;
        Ok(())
    }

    /// Returns the speeds of a device's last passed checks with a benchmark and an engine, in samples per second, newest first. Older ones
    /// do not count, because agents and power modes change.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn speeds(&self, device: &DeviceId, benchmark: &str, engine: &str) -> Result<Vec<f64>> {
        self.store.rows(
            "SELECT samples_per_second FROM device_checks
             WHERE device = ?1 AND benchmark = ?2 AND engine = ?3 AND failure IS NULL AND samples_per_second IS NOT NULL
             ORDER BY number DESC LIMIT 10", params![device.as_str(), benchmark, engine], |row| row.get(0))
    }
}
