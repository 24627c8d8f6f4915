//! Tables of devices' health.

use super::plain;
use regatta_lab_store::{DeviceRow, HealthLogEntry, HealthOrigin};
use regatta_lab_views::wording;

/// Formats the health of devices, one line each.
pub(crate) fn health(devices: &[DeviceRow]) -> String {
    if devices.is_empty() {
        return "no device has connected yet".to_owned();
    }
    let lines = devices.iter().map(|device| {
        let HealthOrigin { since, by, cause } = device.health.shown();
        [
            device.name.clone(),
            device.health.health().as_str().to_owned(),
            since.map_or_else(String::new, wording::time),
            by.unwrap_or_default().to_owned(),
            cause.unwrap_or_default().to_owned(),
        ]
    });
    plain(["device", "health", "since", "by", "cause"], lines)
}

/// Formats the log of a device's health, oldest first.
pub(crate) fn health_log(name: &str, log: &[HealthLogEntry]) -> String {
    if log.is_empty() {
        return format!("{name}: the health never changed");
    }
    let lines = log.iter().map(|entry| {
        [
            wording::time(&entry.at),
            entry.change.clone(),
            entry.health.clone(),
            entry.by.clone(),
            entry.reason.clone().unwrap_or_default(),
            entry.run.map_or_else(String::new, |run| run.to_string()),
        ]
    });
    plain(["time", "change", "health", "by", "reason", "run"], lines)
}
