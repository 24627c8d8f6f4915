//! `regatta device health`, `drain`, `resume`, `clear` and `log`: the health of devices and its history. [`super::device_check`] tests a
//! device.

use std::{thread, time::Duration};

use super::{
    Context,
    context::tell,
    health_text::{described, remedy, user},
    operations::unless_permitted,
};
use crate::{exit::Failure, tables};
use regatta_lab_store::{DeviceRow, HealthChange, Store};
use regatta_lab_views::{
    documents::HealthDocument,
    lookup,
    operations::{DISPATCH_TIME, drain_device, has_work, resume_device},
};

/// The interval for polling the store.
const PAUSE: Duration = Duration::from_millis(200);

/// Shows the health of one device, or of all.
pub(super) fn show(device: Option<&str>, context: &Context, store: &Store) -> Result<(), Failure> {
    let rows = match device {
        Some(name) => vec![lookup::device(store, Some(name))?],
        None => store.devices().all()?,
    };
    let documents: Vec<_> = rows.iter().map(HealthDocument::of).collect();
    context.print(&serde_json::json!({ "devices": documents }), || {
        tables::health(&rows)
    })?;
    Ok(())
}

/// Shows the log of a device's health.
pub(super) fn log(device: &str, context: &Context, store: &Store) -> Result<(), Failure> {
    let row = lookup::device(store, Some(device))?;
    let log = store.health().log(&row.id)?;
    let document = serde_json::json!({ "device": row.id, "name": row.name, "log": log });
    context.print(&document, || tables::health_log(&row.name, &log))?;
    Ok(())
}

/// Takes a device out of service.
pub(super) fn drain(
    device: &str,
    note: Option<&str>,
    context: &Context,
    store: &Store,
) -> Result<(), Failure> {
    let row = lookup::device(store, Some(device))?;
    let name = &row.name;
    drain_device(&row, note, &user(), store).map_err(unless_permitted)?;
    print(&row, context, store, |_| {
        let run = row
            .open_run
            .map_or_else(String::new, |run| format!(" It finishes run {run}."));
        format!(
            "{name} is in maintenance and takes no new runs.{run}\nafterwards: `regatta device resume {name}`"
        )
    })
}

/// Takes a device out of service, unless it is, and waits until it has no run. Ctrl-C ends the wait and leaves it in maintenance.
pub(super) fn drain_and_wait(
    device: &str,
    note: Option<&str>,
    context: &Context,
    store: &Store,
) -> Result<(), Failure> {
    let row = lookup::device(store, Some(device))?;
    let name = &row.name;
    if row.health.maintenance.is_none() {
        drain_device(&row, note, &user(), store).map_err(unless_permitted)?;
    }
    thread::sleep(DISPATCH_TIME);
    let mut is_announced = false;
    while has_work(&row, store)? {
        if !is_announced {
            tell(&format!("{name} is in maintenance; waiting until it has no run"));
            is_announced = true;
        }
        thread::sleep(PAUSE);
    }
    print(&row, context, store, |_| {
        format!("{name} is in maintenance and has no run\nafterwards: `regatta device resume {name}`")
    })
}

/// Puts a device back into service.
pub(super) fn resume(device: &str, context: &Context, store: &Store) -> Result<(), Failure> {
    let row = lookup::device(store, Some(device))?;
    let name = &row.name;
    resume_device(&row, &user(), store).map_err(unless_permitted)?;
    print(&row, context, store, |after| {
        let before = described(&row.health);
        if after.health.can_take_runs() {
            format!("{name} takes runs again; it was {before}")
        } else {
            format!(
                "{name} is no longer in maintenance, and {}\n{}",
                described(&after.health),
                remedy(after)
            )
        }
    })
}

/// Clears a quarantined or suspect device.
pub(super) fn clear(
    device: &str,
    note: Option<&str>,
    context: &Context,
    store: &Store,
) -> Result<(), Failure> {
    let row = lookup::device(store, Some(device))?;
    let name = &row.name;
    if row.duplicated {
        return Err(
            Failure::misuse(format!("two agents still use the identity of {name}")).hint(
                "stop one of them; `regatta-agent enroll --new-identity TOKEN` gives the copy a new key",
            ),
        );
    }
    if !change(&row, HealthChange::Cleared(note), store)? {
        return Err(Failure::misuse(format!(
            "{name} had no findings; it is {}",
            described(&row.health)
        ))
        .hint(remedy(&row)));
    }
    print(&row, context, store, |after| {
        let mut verdict = row.health.clone();
        verdict.maintenance = None;
        format!(
            "{name} is {} now; it was {}",
            after.health.health().as_str(),
            described(&verdict)
        )
    })
}

/// Changes the health of a device in the name of the user. Returns whether anything changed.
pub(super) fn change(row: &DeviceRow, change: HealthChange<'_>, store: &Store) -> Result<bool, Failure> {
    let changed = store.all_or_nothing(|store| store.health().change(&row.id, change, &user()))?;
    Ok(changed.is_some())
}

/// Prints the health after a change.
fn print(
    row: &DeviceRow,
    context: &Context,
    store: &Store,
    text: impl FnOnce(&DeviceRow) -> String,
) -> Result<(), Failure> {
    let after = lookup::device(store, Some(row.id.as_str()))?;
    context.print(&HealthDocument::of(&after), || text(&after))?;
    Ok(())
}
