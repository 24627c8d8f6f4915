//! The health of a device in sentences and hints.

use crate::wording;
use regatta_lab_store::{DeviceHealth, DeviceRow, HealthOrigin, HealthRow};

/// Returns the health with its time and cause, such as `quarantined since ...: 3 failures in a row`.
pub fn described(health: &HealthRow) -> String {
    let HealthOrigin { since, by, cause } = health.shown();
    let mut text = match health.health() {
        DeviceHealth::Maintenance => "in maintenance".to_owned(),
        other => other.as_str().to_owned(),
    };
    if let Some(since) = since {
        text.push_str(&format!(" since {}", wording::time(since)));
    }
    if let Some(by) = by {
        text.push_str(&format!(" by {by}"));
    }
    if let Some(cause) = cause {
        text.push_str(&format!(": {cause}"));
    }
    text
}

/// Returns the commands that bring a device back into service.
pub fn remedy(row: &DeviceRow) -> String {
    let name = &row.name;
    if row.health.maintenance.is_some() {
        format!("`regatta device resume {name}` ends the maintenance")
    } else if row.health.needs_operator {
        format!("`regatta device clear {name}` clears it once only one agent has its identity")
    } else if row.health.can_take_runs() {
        format!("`regatta device log {name}` shows its history")
    } else {
        format!("`regatta device check {name}` tests it; `regatta device clear {name}` clears it untested")
    }
}
