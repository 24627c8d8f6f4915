//! Operations that take devices out of service and back. Changes of health that need a look at the device stay with the command line.

use std::time::Duration;

use super::{OperationError, described, remedy};
use regatta_lab_store::{DeviceRow, HealthChange, Store, StoreError};

/// The time after which a run that was being sent when a device was drained is in the store as sent. The dispatcher looks at the health of
/// devices several times a second.
pub const DISPATCH_TIME: Duration = Duration::from_secs(1);

/// Returns whether a device has a run, is being sent one, or is used by a power session. Call this [`DISPATCH_TIME`] after it was drained.
///
/// # Errors
/// Returns an error when the store fails.
pub fn has_work(row: &DeviceRow, store: &Store) -> Result<bool, StoreError> {
    let is_leased = store.meters().leased_device(&row.id)?.is_some();
    Ok(is_leased || !store.runs().sent(&row.id)?.is_empty())
}

/// Takes a device out of service in the name of `by`.
///
/// # Errors
/// Returns [`OperationError::Refused`] when it is in maintenance already.
pub fn drain_device(
    row: &DeviceRow,
    note: Option<&str>,
    by: &str,
    store: &Store,
) -> Result<(), OperationError> {
    if change(row, HealthChange::Drained(note), by, store)? {
        return Ok(());
    }
    let name = &row.name;
    Err(OperationError::refused(
        format!("{name} is {}", described(&store.health().get(&row.id)?)),
        format!("`regatta device resume {name}` ends the maintenance"),
    ))
}

/// Puts a device back into service in the name of `by`.
///
/// # Errors
/// Returns [`OperationError::Refused`] when it is not in maintenance.
pub fn resume_device(row: &DeviceRow, by: &str, store: &Store) -> Result<(), OperationError> {
    if change(row, HealthChange::Resumed, by, store)? {
        return Ok(());
    }
    let row = DeviceRow {
        health: store.health().get(&row.id)?,
        ..row.clone()
    };
    Err(OperationError::refused(
        format!(
            "{} is not in maintenance; it is {}",
            row.name,
            described(&row.health)
        ),
        remedy(&row),
    ))
}

/// Returns whether anything changed.
fn change(
    row: &DeviceRow,
    change: HealthChange<'_>,
    by: &str,
    store: &Store,
) -> Result<bool, OperationError> {
    let changed = store.all_or_nothing(|store| store.health().change(&row.id, change, by))?;
    Ok(changed.is_some())
}
