//! Keeps a device from getting runs while its agent is upgraded, which would end them: the device is in maintenance meanwhile. A campaign
//! or an operator otherwise starts a run between the look at the device and the restart of its agent.

use std::thread;

use regatta_types::DeviceId;

use regatta_lab_store::{COORDINATOR, HealthChange, Result, Store};
use regatta_lab_views::operations::DISPATCH_TIME;

/// The note of the maintenance.
const NOTE: &str = "its agent is being upgraded";

/// Puts a device into maintenance. Returns whether [`end`] must end it: not if an operator had put it there.
pub(super) fn begin(device: &DeviceId, store: &Store) -> Result<bool> {
    let maintenance = store.health().get(device)?.maintenance;
    if let Some(maintenance) = maintenance {
        // A command that was killed has left it.
        return Ok(maintenance.note.as_deref() == Some(NOTE));
    }
    store.all_or_nothing(|store| {
        store
            .health()
            .change(device, HealthChange::Drained(Some(NOTE)), COORDINATOR)
    })?;
    thread::sleep(DISPATCH_TIME);
    Ok(true)
}

/// Ends the maintenance.
pub(super) fn end(device: &DeviceId, store: &Store) -> Result<()> {
    store
        .all_or_nothing(|store| store.health().change(device, HealthChange::Resumed, COORDINATOR))
        .map(drop)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_device_gets_no_run_while_it_is_upgraded_and_an_operators_maintenance_stays() {
        let store = Store::open(Path::new(":memory:")).unwrap();
        let device: DeviceId = "ab".repeat(16).parse().unwrap();
        assert!(begin(&device, &store).unwrap());
        assert!(!store.health().can_take_runs(&device).unwrap());
        assert!(begin(&device, &store).unwrap(), "of a command that was killed");
        end(&device, &store).unwrap();
        assert!(store.health().can_take_runs(&device).unwrap());
        let drained = HealthChange::Drained(Some("fan"));
        store.health().change(&device, drained, "operator").unwrap();
        assert!(!begin(&device, &store).unwrap());
        assert!(!store.health().can_take_runs(&device).unwrap());
    }
}
