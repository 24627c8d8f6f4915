//! The judgement about a device after the end of its run. The finisher calls it in the transaction that records the run.

use regatta_types::{RunId, documents::EndCause};

use super::cause::{RunEnd, cause_of_end};
use crate::store::{COORDINATOR, DeviceHealth, HealthChange, Result, Store};

/// Changes the health of a recorded run's device. Ends that are neither good nor caused by the device show nothing.
///
/// # Errors
/// Returns an error when the store fails.
pub(crate) fn judge_device(store: &Store, run: RunId, limit: u32) -> Result<()> {
    let Some(row) = store.run(run)? else {
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
    let before = store.health(&row.device)?.verdict;
    if let Some(after) = store.change_health(&row.device, change, COORDINATOR)? {
        let cause = after.cause.as_deref().unwrap_or_default();
        match after.verdict {
            verdict if verdict == before => {}
            DeviceHealth::Quarantined => tracing::error!(
                device = %row.device,
                "quarantined, it gets no more runs: {cause}. hint: `regatta device check` tests it"
            ),
            verdict => tracing::info!(device = %row.device, "{} now. {cause}", verdict.as_str()),
        }
    }
    Ok(())
}
