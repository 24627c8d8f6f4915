//! A device's health as JSON.

use serde::Serialize;

use regatta_lab_store::{DeviceRow, HealthOrigin};

/// The health of a device as a JSON document.
#[derive(Serialize)]
pub struct HealthDocument<'a> {
    device: &'a str,
    name: &'a str,
    health: &'static str,
    takes_runs: bool,
    cause: Option<&'a str>,
    since: Option<&'a str>,
    by: Option<&'a str>,
    verdict: &'static str,
    verdict_cause: Option<&'a str>,
    device_failures_in_a_row: u32,
    needs_operator: bool,
}

impl<'a> HealthDocument<'a> {
    /// Returns the health of a device.
    pub fn of(row: &'a DeviceRow) -> Self {
        let HealthOrigin { since, by, cause } = row.health.shown();
        Self {
            device: row.id.as_str(),
            name: &row.name,
            health: row.health.health().as_str(),
            takes_runs: row.health.can_take_runs(),
            cause,
            since,
            by,
            verdict: row.health.verdict.as_str(),
            verdict_cause: row.health.cause.as_deref(),
            device_failures_in_a_row: row.health.failures,
            needs_operator: row.health.needs_operator,
        }
    }
}
