//! `regatta device health`, `drain`, `resume`, `clear` and `log`: the health of devices and its history. [`super::device_check`] tests a
//! device.

use std::{thread, time::Duration};

use super::{
    Context,
    context::tell,
    device_watch::DeviceWatch,
    health_text::{described, remedy, user},
    operations::unless_permitted,
};
use crate::{exit::Failure, tables};
use regatta_lab_store::{DeviceRow, HealthChange, RunRow, Store, workspace::Workspace};
use regatta_lab_views::{
    documents::HealthDocument,
    lookup,
    operations::{DISPATCH_TIME, drain_device, has_work, resume_device},
};

/// The devices of a command.
#[derive(Debug, clap::Args)]
pub(super) struct NamedDevices {
    /// Devices by name or id
    #[arg(value_name = "DEVICE", required_unless_present = "device_label")]
    devices: Vec<String>,
    /// Devices with one of these labels, comma separated
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    device_label: Vec<String>,
}

impl NamedDevices {
    /// Returns the devices, each once.
    fn find(&self, store: &Store) -> Result<Vec<DeviceRow>, Failure> {
        let mut found = lookup::devices(store, &self.devices)?;
        for row in lookup::labelled_devices(store, &self.device_label)? {
            lookup::add(&mut found, row);
        }
        Ok(found)
    }
}

/// Flags of `device drain`.
#[derive(Debug, clap::Args)]
pub(super) struct DrainArgs {
    #[command(flatten)]
    devices: NamedDevices,
    /// The reason, shown to other users
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Wait until the device has no run; it may be in maintenance already
    #[arg(long)]
    wait: bool,
}

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

/// Takes a device out of service. Ctrl-C ends the wait for its run, and leaves it in maintenance.
pub(super) fn drain(
    args: &DrainArgs,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    let rows = args.devices.find(store)?;
    for row in &rows {
        // The command can be repeated, for example after Ctrl-C ended its wait.
        if row.health.maintenance.is_none() || args.note.is_some() {
            drain_device(row, args.note.as_deref(), &user(), store).map_err(unless_permitted)?;
        }
    }
    for row in rows.iter().filter(|_| args.wait) {
        wait_for_idleness(row, context, workspace, store)?;
    }
    print(&rows, context, store, |row, _| {
        let name = &row.name;
        let state = match (args.wait, row.open_run) {
            (true, _) => "has no run".to_owned(),
            (false, Some(run)) => format!("takes no new runs. It finishes run {run}."),
            (false, None) => "takes no new runs.".to_owned(),
        };
        format!("{name} is in maintenance and {state}\nafterwards: `regatta device resume {name}`")
    })
}

fn wait_for_idleness(
    row: &DeviceRow,
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    thread::sleep(DISPATCH_TIME);
    let mut wait = DrainWait::default();
    while has_work(row, store)? {
        wait.report(row, context, workspace, store)?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// What the wait for a device has already reported.
#[derive(Default)]
struct DrainWait {
    is_announced: bool,
    has_reported_coordinator: bool,
    has_hinted: bool,
    watch: DeviceWatch,
}

impl DrainWait {
    /// Reports each reason once why the wait may not end by itself, with what ends it.
    fn report(
        &mut self,
        row: &DeviceRow,
        context: &Context,
        workspace: &Workspace,
        store: &Store,
    ) -> Result<(), Failure> {
        if !self.is_announced {
            tell(&format!(
                "{} is in maintenance; waiting until no run and no power session uses it",
                row.name
            ));
            self.is_announced = true;
        }
        if !workspace.is_served() && !self.has_reported_coordinator {
            tell(&format!(
                "no coordinator serves this workspace, so no messages of devices arrive; start it: {}",
                context.command("serve")
            ));
            self.has_reported_coordinator = true;
        }
        let mut runs: Vec<RunRow> = Vec::new();
        for run in store.runs().sent(&row.id)? {
            runs.extend(store.runs().get(run)?);
        }
        let report = self.watch.look(&runs, store)?;
        report.changes.iter().for_each(|change| tell(change));
        if let Some(run) = runs.first()
            && !self.has_hinted
            && store.devices().get(&row.id)?.is_some_and(|device| !device.online)
        {
            tell(&format!(
                "start `regatta-agent serve` on {}, or end the wait without the run's results: {}",
                row.name,
                context.command(&format!("runs give-up {}", run.id))
            ));
            self.has_hinted = true;
        }
        Ok(())
    }
}

/// Puts a device back into service.
pub(super) fn resume(devices: &NamedDevices, context: &Context, store: &Store) -> Result<(), Failure> {
    let rows = devices.find(store)?;
    let in_service = |row: &DeviceRow| row.health.maintenance.is_none() && row.health.can_take_runs();
    for row in rows.iter().filter(|row| !in_service(row)) {
        resume_device(row, &user(), store).map_err(unless_permitted)?;
    }
    print(&rows, context, store, |row, after| {
        let name = &row.name;
        let before = described(&row.health);
        if in_service(row) {
            format!("{name} was not in maintenance; it takes runs")
        } else if after.health.can_take_runs() {
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
    devices: &NamedDevices,
    note: Option<&str>,
    context: &Context,
    store: &Store,
) -> Result<(), Failure> {
    let rows = devices.find(store)?;
    // Nothing is changed when one of them cannot be cleared.
    if let Some(row) = rows.iter().find(|row| row.duplicated) {
        return Err(
            Failure::misuse(format!("two agents still use the identity of {}", row.name)).hint(
                "stop one of them; `regatta-agent enroll --new-identity TOKEN` gives the copy a new key",
            ),
        );
    }
    for row in &rows {
        let is_cleared = change(row, HealthChange::Cleared(note), store)?;
        // Among several devices, some may have none.
        if !is_cleared && rows.len() == 1 {
            let (name, health) = (&row.name, described(&row.health));
            return Err(Failure::misuse(format!("{name} had no findings; it is {health}")).hint(remedy(row)));
        }
    }
    print(&rows, context, store, |row, after| {
        let name = &row.name;
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

/// Prints the health of devices after a change: one document for one device, and a list for several. `text` gets a device before and after.
fn print(
    rows: &[DeviceRow],
    context: &Context,
    store: &Store,
    text: impl Fn(&DeviceRow, &DeviceRow) -> String,
) -> Result<(), Failure> {
    let after = rows
        .iter()
        .map(|row| lookup::device(store, Some(row.id.as_str())));
    let after = after.collect::<Result<Vec<_>, _>>()?;
    let documents: Vec<_> = after.iter().map(HealthDocument::of).collect();
    let document = match documents.as_slice() {
        [only] => serde_json::to_value(only)?,
        all => serde_json::json!({ "devices": all }),
    };
    context.print(&document, || {
        let texts = rows.iter().zip(&after).map(|(before, after)| text(before, after));
        texts.collect::<Vec<_>>().join("\n")
    })?;
    Ok(())
}
