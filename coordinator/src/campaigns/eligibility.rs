//! Which devices may take cells. This is the one place that decides it.

use crate::store::DeviceRow;

/// Returns whether a device may take cells, now or once its run has ended: it is heard, and one agent uses its identity.
pub(super) const fn is_eligible(device: &DeviceRow) -> bool {
    device.online && !device.duplicated
}
