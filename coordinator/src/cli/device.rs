//! `regatta device`: lists and describes devices. [`super::membership`] adds and removes them.

use std::slice;

use jiff::Timestamp;

use super::{
    Context, context::tell, deploy, device_check, device_health, examination, image, label, membership,
};
use crate::{
    exit::{CommandResult, Failure},
    tables,
};
use regatta_lab_store::{DeviceRow, Store, workspace::Workspace};
use regatta_lab_views::{
    documents::{DeviceList, ShownDevice},
    lookup, wording,
};
use regatta_types::ExitCode;

/// Commands about devices.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Add a device, and print the one-time token with which it enrolls
    Add(membership::AddArgs),
    /// Deploy the agent to a board over SSH: install, enroll and start it, and wait until it connects
    Deploy(Box<deploy::Args>),
    /// Upgrade the agent on deployed boards over SSH, in waves that stop when devices fail
    Upgrade(Box<deploy::UpgradeArgs>),
    /// Write the files to add to an image before flashing, with which a board enrolls at its first boot
    Image(image::Args),
    /// Remove a device permanently, with its key, its certificates and its open runs
    Remove(membership::RemoveArgs),
    /// List the devices that have connected
    List,
    /// Show one device
    Show {
        /// The device's name or id
        device: String,
    },
    /// Show and change the labels of a device, by which `--device-label` selects devices
    Label(label::Args),
    /// Show the health of devices: good, suspect, quarantined or maintenance, with the cause
    Health {
        /// The device's name or id [default: every device]
        device: Option<String>,
    },
    /// Take a device out of service: it finishes its run and gets no other
    Drain(device_health::DrainArgs),
    /// Put a drained device back into service
    Resume(device_health::NamedDevices),
    /// Clear a quarantined or suspect device without a check
    Clear {
        #[command(flatten)]
        devices: device_health::NamedDevices,
        /// What was repaired, for the log
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Run two short known runs, and clear or quarantine the device by their results; the exit code is 1 if they fail
    Check(device_check::Args),
    /// Show how the health of a device has changed
    Log {
        /// The device's name or id
        device: String,
    },
    /// Examine a device: its board and software, and whether it is fit to measure; the exit code is 1 if it is not
    Doctor(examination::Args),
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    match command {
        Command::Deploy(args) => return deploy::run(args, context),
        Command::Upgrade(args) => return deploy::upgrade(args, context),
        Command::Image(args) => return image::run(args, context),
        Command::Add(args) => membership::add(args, context, &workspace, &store)?,
        Command::Remove(args) => membership::remove(args, context, &workspace, &store)?,
        Command::Label(args) => label::run(args, context, &store)?,
        Command::Health { device } => device_health::show(device.as_deref(), context, &store)?,
        Command::Drain(args) => device_health::drain(args, context, &workspace, &store)?,
        Command::Resume(devices) => device_health::resume(devices, context, &store)?,
        Command::Clear { devices, note } => device_health::clear(devices, note.as_deref(), context, &store)?,
        Command::Check(args) => return device_check::run(args, context, &workspace, &store),
        Command::Log { device } => device_health::log(device, context, &store)?,
        Command::Doctor(args) => return examination::run(args, context, &workspace, &store),
        Command::List => {
            let mut devices = store.devices().all()?;
            listen(&mut devices, context, &workspace, &store)?;
            let refused = store.devices().other_versions()?;
            let pending = store.enrollment_tokens().pending()?;
            context.print(&DeviceList::of(&devices, &refused), || {
                tables::devices(&devices, &refused, &pending)
            })?;
        }
        Command::Show { device } => {
            let mut row = lookup::device(&store, Some(device))?;
            listen(slice::from_mut(&mut row), context, &workspace, &store)?;
            let wall_ratio = store.devices().wall_ratio(&row.id)?;
            let meter_ratio = store.devices().meter_ratio(&row.id)?;
            let ratios = [wall_ratio.as_ref(), meter_ratio.as_ref()];
            context.print(&ShownDevice::of(&row, ratios), || tables::device(&row, ratios))?;
        }
    }
    Ok(ExitCode::Success)
}

/// Updates the devices with their present state: the store has the last reports. Without a coordinator no device is online.
pub(super) fn listen(
    devices: &mut [DeviceRow],
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    if workspace.is_served() {
        if let Some(since) = store.service().state()?.broker_lost {
            let since = wording::ago(&since, Timestamp::now());
            tell(&format!(
                "the coordinator lost the broker {since}, so no messages of devices arrive"
            ));
        }
        return Ok(());
    }
    if devices.iter().all(|device| !device.online) {
        return Ok(());
    }
    tell(&format!(
        "no coordinator serves this workspace, so no messages of devices arrive; start it: {}",
        context.command("serve")
    ));
    for device in devices {
        device.online = false;
    }
    Ok(())
}
