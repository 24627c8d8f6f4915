//! Decides which devices may take cells. No other module does.

use regatta_lab_store::DeviceRow;

/// Returns whether a device may take cells, now or once its run has ended: it is present, and neither quarantined nor in maintenance.
pub(super) const fn is_eligible(device: &DeviceRow) -> bool {
    is_present(device) && device.health.can_take_runs()
}

/// Returns whether a device may continue its run: it is online, and only one agent uses its identity. A drained device finishes its run.
pub(super) const fn is_present(device: &DeviceRow) -> bool {
    device.online && !device.duplicated
}
