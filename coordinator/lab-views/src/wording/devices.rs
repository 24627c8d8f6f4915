//! A device's state and health in a line.

use regatta_text::escape;

use regatta_lab_store::{DeviceActivity, DeviceRow};

/// Returns the activity of a device in words.
pub const fn device_state(device: &DeviceRow) -> &'static str {
    match device.activity() {
        DeviceActivity::Duplicated => "duplicated: two agents use its identity",
        activity => activity.as_str(),
    }
}

/// Formats a device's name, state and health in one line.
pub fn describe_device(device: &DeviceRow) -> String {
    format!("{}: {}", escape(&device.name), state_and_health(device))
}

pub fn state_and_health(device: &DeviceRow) -> String {
    format!("{}, {}", device_state(device), device.health.health().as_str())
}
