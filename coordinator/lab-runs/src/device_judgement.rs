//! The judgement about a device after the end of its run. The finisher calls it in the transaction that records the run. A run that its
//! device cannot seal counts before it is recorded. A run counts once.

use regatta_types::{DeviceId, RunId, documents::EndCause};

use super::cause::{RunEnd, cause_of_end, fails_by_device};
use regatta_lab_store::{COORDINATOR, DeviceHealth, HealthChange, Result, Store};

/// Changes the health of a recorded run's device. Ends that are neither good nor caused by the device show nothing.
///
/// # Errors
/// Returns an error when the store fails.
pub fn judge_device(store: &Store, run: RunId, limit: u32) -> Result<()> {
    let Some(row) = store.runs().get(run)? else {
        return Ok(());
    };
    let Some(end) = RunEnd::of(&row) else {
        return Ok(());
    };
    let change = match cause_of_end(&end) {
        None => HealthChange::RunSucceeded(run),
        Some(EndCause::Device) => HealthChange::DeviceFailed {
            run,
            reason: end.reason.unwrap_or("its files do not match its signed evidence"),
            limit,
        },
        Some(_) => return Ok(()),
    };
    change_health(store, &row.device, change)
}

/// Counts the runs that could not be sealed because of a failure of the device.
///
/// # Errors
/// Returns an error when the store fails.
pub(crate) fn judge_unsealed_runs(store: &Store, limit: u32) -> Result<()> {
    for row in store.runs().unsealed()? {
        let Some(reason) = row
            .state
            .reason
            .as_deref()
            .filter(|_| fails_by_device(&RunEnd::reported(&row)))
        else {
            continue;
        };
        let change = HealthChange::DeviceFailed {
            run: row.id,
            reason,
            limit,
        };
        store.all_or_nothing(|store| change_health(store, &row.device, change))?;
    }
    Ok(())
}

fn change_health(store: &Store, device: &DeviceId, change: HealthChange<'_>) -> Result<()> {
    let before = store.health().get(device)?.verdict;
    if let Some(after) = store.health().change(device, change, COORDINATOR)? {
        let cause = after.cause.as_deref().unwrap_or_default();
        match after.verdict {
            verdict if verdict == before => {}
            DeviceHealth::Quarantined => tracing::error!(
                device = %device,
                "quarantined, it gets no more runs: {cause}. hint: `regatta device check` tests it"
            ),
            verdict => tracing::info!(device = %device, "{} now. {cause}", verdict.as_str()),
        }
    }
    Ok(())
}
