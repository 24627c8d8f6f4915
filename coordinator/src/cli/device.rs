//! `regatta device`: who is in the fleet. Letting in and removing stand in [`super::membership`].

use std::{collections::BTreeMap, slice};

use jiff::Timestamp;
use regatta_types::RunId;
use regatta_wire::frame;
use serde::Serialize;

use super::{
    Context, context::tell, deploy, device_check, device_health, examination, image, label, lookup,
    membership,
};
use crate::{
    exit::{self, CommandResult, Failure},
    fleet::unavailable_engines,
    store::{DeviceLabel, DeviceRow, OtherVersion, Store},
    tables,
    workspace::Workspace,
};

/// Commands about devices.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Adds a device: prints a one-time token with which it enrolls
    Add(membership::AddArgs),
    /// Deploys the agent to a board over SSH: installs, enrolls and starts it, and waits until it connects
    Deploy(Box<deploy::Args>),
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

/// A device as a JSON document.
#[derive(Serialize)]
struct DeviceDocument<'a> {
    device: &'a str,
    name: &'a str,
    online: bool,
    state: &'static str,
    run: Option<RunId>,
    duplicated: bool,
    health: &'static str,
    takes_runs: bool,
    health_cause: Option<&'a str>,
    health_since: Option<&'a str>,
    labels: &'a [DeviceLabel],
    agent: &'a str,
    engines: Vec<&'static str>,
    unavailable_engines: BTreeMap<&'static str, &'static str>,
    first_seen: &'a str,
    last_seen: &'a str,
    facts: serde_json::Value,
}

impl<'a> From<&'a DeviceRow> for DeviceDocument<'a> {
    fn from(row: &'a DeviceRow) -> Self {
        let (health_since, _, health_cause) = row.health.shown();
        Self {
            device: row.id.as_str(),
            name: &row.name,
            online: row.online,
            state: row.activity().as_str(),
            run: row.open_run,
            duplicated: row.duplicated,
            health: row.health.health().as_str(),
            takes_runs: row.health.can_take_runs(),
            health_cause,
            health_since,
            labels: &row.labels,
            agent: &row.agent,
            engines: row.engines.iter().map(|engine| engine.as_str()).collect(),
            unavailable_engines: unavailable_engines(row)
                .into_iter()
                .map(|(engine, reason)| (engine.as_str(), reason))
                .collect(),
            first_seen: &row.first_seen,
            last_seen: &row.last_seen,
            // As the device sent it, even if that is no JSON.
            facts: serde_json::from_str(&row.facts).unwrap_or_else(|_| row.facts.as_str().into()),
        }
    }
}

/// A device of another wire version as a JSON document.
#[derive(Serialize)]
struct RefusedDocument<'a> {
    device: &'a str,
    wire: u16,
    coordinator_wire: [u16; 2],
    last_seen: &'a str,
}

impl<'a> From<&'a OtherVersion> for RefusedDocument<'a> {
    fn from(row: &'a OtherVersion) -> Self {
        Self {
            device: row.device.as_str(),
            wire: row.wire,
            coordinator_wire: [frame::OLDEST_VERSION, frame::VERSION],
            last_seen: &row.last_seen,
        }
    }
}

pub(super) fn run(command: &Command, context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    match command {
        Command::Deploy(args) => return deploy::run(args, context),
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
            let documents: Vec<DeviceDocument<'_>> = devices.iter().map(Into::into).collect();
            let refused = store.other_versions()?;
            let refused_documents: Vec<RefusedDocument<'_>> = refused.iter().map(Into::into).collect();
            let document = serde_json::json!({ "devices": documents, "refused": refused_documents });
            context.print(&document, || tables::devices(&devices, &refused))?;
        }
        Command::Show { device } => {
            let mut row = lookup::device(&store, Some(device))?;
            listen(slice::from_mut(&mut row), context, &workspace, &store)?;
            context.print(&DeviceDocument::from(&row), || tables::device(&row))?;
        }
    }
    Ok(exit::OK)
}

/// What the store holds is what was heard last: without a coordinator nobody hears a device now.
pub(super) fn listen(
    devices: &mut [DeviceRow],
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<(), Failure> {
    if workspace.is_served() {
        if let Some(since) = store.service()?.broker_lost {
            let since = tables::ago(&since, Timestamp::now());
            tell(&format!(
                "the coordinator lost the broker {since}, so no device is heard"
            ));
        }
        return Ok(());
    }
    if devices.iter().all(|device| !device.online) {
        return Ok(());
    }
    tell(&format!(
        "no coordinator serves this workspace, so no device is heard; start it: {}",
        context.command("serve")
    ));
    for device in devices {
        device.online = false;
    }
    Ok(())
}
