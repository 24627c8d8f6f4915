//! `regatta device`: lists and describes devices. [`super::membership`] adds and removes them.

use std::slice;

use jiff::Timestamp;

use super::{
    Context, context::tell, deploy, device_check, device_health, examination, image, label, membership,
};
use crate::{
    exit::{self, CommandResult, Failure},
    tables,
};
use regatta_lab_store::{DeviceRow, Store, workspace::Workspace};
use regatta_lab_views::{
    documents::{DeviceList, ShownDevice},
    lookup, wording,
};

/// Commands about devices.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Adds a device: prints a one-time token with which it enrolls
    Add(membership::AddArgs),
    /// Deploys the agent to a board over SSH: installs, enrolls and starts it, and waits until it connects
    Deploy(Box<deploy::Args>),
    /// Upgrades the agent of deployed boards over SSH, in waves that failures stop
    Upgrade(Box<deploy::UpgradeArgs>),
    /// Writes the files with which a board enrolls at its first boot, before it is flashed
    Image(image::Args),
    /// Removes a device for good: its key, its certificates, its open runs
    Remove(membership::RemoveArgs),
    /// Lists the devices that have connected so far
    List,
    /// Shows one device
    Show {
        /// Its name or id
        device: String,
    },
    /// Shows and changes the labels of a device, by which `--device-label` selects devices
    Label(label::Args),
    /// Shows the health of devices: good, suspect, quarantined or maintenance, with the cause
    Health {
        /// Its name or id [default: every device]
        device: Option<String>,
    },
    /// Takes a device out of service: it finishes its run and gets no other
    Drain {
        /// Its name or id
        device: String,
        /// The reason, shown to other users
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Puts a drained device back into service
    Resume {
        /// Its name or id
        device: String,
    },
    /// Clears a quarantined or suspect device without a check
    Clear {
        /// Its name or id
        device: String,
        /// The repair, for the log
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Makes two short known runs, and clears or quarantines the device by their results; exit code 1 when they fail
    Check(device_check::Args),
    /// Shows the changes of a device's health
    Log {
        /// Its name or id
        device: String,
    },
    /// Examines a device: what it is, and whether it is fit to measure; exit code 1 if not
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
        Command::Drain { device, note } => device_health::drain(device, note.as_deref(), context, &store)?,
        Command::Resume { device } => device_health::resume(device, context, &store)?,
        Command::Clear { device, note } => device_health::clear(device, note.as_deref(), context, &store)?,
        Command::Check(args) => return device_check::run(args, context, &workspace, &store),
        Command::Log { device } => device_health::log(device, context, &store)?,
        Command::Doctor(args) => return examination::run(args, context, &workspace, &store),
        Command::List => {
            let mut devices = store.devices()?;
            listen(&mut devices, context, &workspace, &store)?;
            let refused = store.other_versions()?;
            context.print(&DeviceList::of(&devices, &refused), || {
                tables::devices(&devices, &refused)
            })?;
        }
        Command::Show { device } => {
            let mut row = lookup::device(&store, Some(device))?;
            listen(slice::from_mut(&mut row), context, &workspace, &store)?;
            let wall_ratio = store.wall_ratio(&row.id)?;
            let meter_ratio = store.meter_ratio(&row.id)?;
            let ratios = [wall_ratio.as_ref(), meter_ratio.as_ref()];
            context.print(&ShownDevice::of(&row, ratios), || tables::device(&row, ratios))?;
        }
    }
    Ok(exit::OK)
}

/// Updates the devices with their present state: the store has the last reports. Without a coordinator no device is online.
pub(super) fn listen(
    devices: &mut [DeviceRow],
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    if workspace.is_served() {
        if let Some(since) = store.service()?.broker_lost {
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
