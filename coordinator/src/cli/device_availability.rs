//! Checks that devices take runs when a user requests them: quarantined and drained devices do not, unless the user forces it. A device that a
//! power session measures takes no run in any case: the store refuses it.

use std::collections::BTreeSet;

use super::{
    context::tell,
    health_text::{described, remedy},
};
use crate::exit::Failure;
use regatta_lab_store::{DeviceRow, RunDraft, Store};

/// The hint for commands that can force runs.
const FORCE: &str = "--force requests the runs anyway";

/// Keeps the devices that take runs and prints which are left out, because the user selected them as a group.
///
/// # Errors
/// Returns an error when no device is left.
pub(super) fn only_available(devices: Vec<DeviceRow>, store: &Store) -> Result<Vec<DeviceRow>, Failure> {
    let leased = store.meters().leased_devices()?;
    let mut unmeasured = Vec::new();
    for device in devices {
        match leased.iter().find(|leased| leased.device == device.id) {
            Some(leased) => tell(&format!(
                "skipped: power session {} is measuring {}",
                leased.session, device.name
            )),
            None => unmeasured.push(device),
        }
    }
    let (available, others): (Vec<_>, Vec<_>) = unmeasured
        .into_iter()
        .partition(|device| device.health.can_take_runs());
    if let ([], Some(first)) = (available.as_slice(), others.first()) {
        let failure = unavailable(first).hint(format!("{}; {FORCE}", remedy(first)));
        return Err(match others.len() {
            1 => failure,
            count => failure.context(format!("none of the {count} devices accepts runs")),
        });
    }
    for device in &others {
        tell(&format!(
            "skipped: {} is {}",
            device.name,
            described(&device.health)
        ));
    }
    Ok(available)
}

/// Checks a device for a command that cannot force runs.
///
/// # Errors
/// Returns an error with the reason and a remedy when the device takes no runs.
pub(super) fn expect_available(device: &DeviceRow) -> Result<(), Failure> {
    if device.health.can_take_runs() {
        Ok(())
    } else {
        Err(unavailable(device).hint(remedy(device)))
    }
}

/// Checks the devices of drafts, or marks the drafts as forced.
///
/// # Errors
/// Returns an error with the reason and a remedy when a device takes no runs and the user does not force them.
pub(super) fn expect_available_or_force(
    drafts: &mut [RunDraft],
    is_forced: bool,
    store: &Store,
) -> Result<(), Failure> {
    let mut checked = BTreeSet::new();
    for draft in drafts {
        draft.forced = is_forced;
        if is_forced || !checked.insert(draft.spec.device.clone()) {
            continue;
        }
        if !store.health().can_take_runs(&draft.spec.device)?
            && let Some(device) = store.devices().get(&draft.spec.device)?
        {
            return Err(unavailable(&device).hint(format!("{}; {FORCE}", remedy(&device))));
        }
    }
    Ok(())
}

fn unavailable(device: &DeviceRow) -> Failure {
    Failure::misuse(format!(
        "{} accepts no runs: it is {}",
        device.name,
        described(&device.health)
    ))
}
