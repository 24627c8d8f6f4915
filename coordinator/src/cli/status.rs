//! `regatta status`: the coordinator, its broker, disk and tokens, the devices with their runs, and the things that need attention.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use regatta_text::escape;
use regatta_types::{BrokerAddress, DeviceId, ExitCode, RunId};
use rustix::fs::statvfs;

use super::{
    Context,
    device::listen,
    health_text::{described, remedy},
};
use crate::{
    exit::{CommandResult, Failure},
    tables::{self, BrokerStatus, CoordinatorStatus, DeviceStatus, DiskStatus, LabStatus, TokenStatus},
};
use regatta_lab_net::keys::Keys;
use regatta_lab_runs::count_runs_not_in_store;
use regatta_lab_store::{
    DeviceActivity, DeviceRow, PendingToken, RunRow, Store,
    workspace::{BrokerChoice, Workspace, kept_free_bytes},
};
use regatta_lab_views::wording::{self, run_text};

/// A certificate that ends within this time needs attention. Agents renew theirs long before.
const ENDS_SOON: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Prints the status. The exit code is 1 if something needs attention.
pub(super) fn run(context: &Context) -> CommandResult {
    let (workspace, store) = context.open_store()?;
    let status = gather(context, &workspace, &store)?;
    context.print(&status, || tables::status(&status))?;
    Ok(if status.attention.is_empty() {
        ExitCode::Success
    } else {
        ExitCode::Negative
    })
}

fn gather(context: &Context, workspace: &Workspace, store: &Store) -> Result<LabStatus, Failure> {
    let service = store.service().state()?;
    let is_served = workspace.is_served();
    let mut rows = store.devices().all()?;
    listen(&mut rows, context, workspace, store)?;
    let open = store.runs().open()?;
    let members: BTreeMap<DeviceId, String> = store
        .members()
        .all()?
        .into_iter()
        .filter(|member| member.removed.is_none())
        .map(|member| (member.device, member.not_after))
        .collect();
    let devices = rows.iter().map(|row| device(row, &open, &members)).collect();
    let tokens = store.enrollment_tokens().pending()?.into_iter();
    let mut status = LabStatus {
        coordinator: CoordinatorStatus {
            running: is_served,
            since: service.started.filter(|_| is_served),
            workspace: workspace.root().display().to_string(),
            page: service.page.filter(|_| is_served),
        },
        broker: broker(workspace, service.broker_lost.filter(|_| is_served), is_served),
        disk: disk(workspace, store)?,
        tokens: tokens
            .map(|PendingToken { name, expires }| TokenStatus { name, expires })
            .collect(),
        queued: open.iter().filter(|run| run.spec_sha256.is_none()).count(),
        in_progress: open.iter().filter(|run| run.spec_sha256.is_some()).count(),
        devices,
        authority_until: authority_end(workspace)?.map(|end| end.to_string()),
        attention: Vec::new(),
    };
    status.attention = attention(&status, &rows, context, workspace, store)?;
    let unsealed = open.iter().filter(|run| run.is_unsealed());
    status
        .attention
        .extend(unsealed.map(|run| unsealed_line(run, context)));
    Ok(status)
}

/// Returns the end of the certificate of the lab's authority.
fn authority_end(workspace: &Workspace) -> Result<Option<Timestamp>, Failure> {
    if !workspace.config().tls {
        return Ok(None);
    }
    Ok(Keys::load(&workspace.keys())?.authority().not_after())
}

fn device(row: &DeviceRow, open: &[RunRow], members: &BTreeMap<DeviceId, String>) -> DeviceStatus {
    let own = || open.iter().filter(|run| run.device == row.id);
    let current = own().find(|run| run.spec_sha256.is_some());
    DeviceStatus {
        device: row.id.to_string(),
        name: row.name.clone(),
        state: row.activity(),
        health: row.health.health(),
        run: current.map(|run| run.id),
        subject: current.map(|run| format!("{} {}", run.scenario, run.audit().unwrap_or(run.mode.as_str()))),
        phase: current.map(|run| run.shown_phase().as_str()),
        queued: own().filter(|run| run.spec_sha256.is_none()).count(),
        last_seen: row.last_seen.clone(),
        certificate_until: members.get(&row.id).cloned(),
    }
}

fn broker(workspace: &Workspace, lost: Option<String>, is_served: bool) -> BrokerStatus {
    let config = workspace.config();
    let (embedded, address) = match &config.broker {
        BrokerChoice::Embedded { listen } => (true, BrokerAddress::of(*listen, config.tls).to_string()),
        BrokerChoice::External(address) => (false, address.to_string()),
    };
    BrokerStatus {
        embedded,
        address,
        connected: is_served && lost.is_none(),
        lost_since: lost,
    }
}

fn disk(workspace: &Workspace, store: &Store) -> Result<DiskStatus, Failure> {
    let disk = statvfs(workspace.runs()).map_err(|error| {
        Failure::from(
            anyhow::Error::new(error)
                .context(format!("cannot read the disk of {}", workspace.root().display())),
        )
    })?;
    let total = disk.f_blocks.saturating_mul(disk.f_frsize);
    Ok(DiskStatus {
        free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
        total_bytes: total,
        kept_free_bytes: kept_free_bytes(workspace.config().min_free_bytes, total),
        run_bytes: store.streams().delivered_bytes()?,
    })
}

/// Describes a run that its device cannot seal.
fn unsealed_line(run: &RunRow, context: &Context) -> String {
    format!(
        "{} cannot seal run {} and tries again: {}: check its disk, or {}",
        run_text::device(run),
        run.id,
        escape(run.state.reason.as_deref().unwrap_or_default()),
        context.command(&format!("runs give-up {}", run.id))
    )
}

/// Lists the things that need a user's attention, each with a hint.
fn attention(
    status: &LabStatus,
    rows: &[DeviceRow],
    context: &Context,
    workspace: &Workspace,
    store: &Store,
) -> Result<Vec<String>, Failure> {
    let now = Timestamp::now();
    let mut found = Vec::new();
    if !status.coordinator.running {
        found.push(format!(
            "no coordinator serves this workspace: {}",
            context.command("serve")
        ));
    }
    if let Some(since) = &status.broker.lost_since {
        found.push(format!(
            "the coordinator lost the broker {} {}: is it running?",
            status.broker.address,
            wording::ago(since, now)
        ));
    }
    if status.disk.free_bytes < status.disk.kept_free_bytes {
        found.push(format!(
            "disk full ({} free): logs are not accepted: free space, or {}",
            wording::bytes(status.disk.free_bytes),
            context.command("runs prune --older-than 30d")
        ));
    }
    for device in &status.devices {
        let waiting = device.queued + usize::from(device.run.is_some());
        if status.coordinator.running && device.state == DeviceActivity::Offline && waiting > 0 {
            found.push(format!(
                "{} is offline, last seen {}, with open runs: {waiting}",
                device.name,
                wording::ago(&device.last_seen, now)
            ));
        }
        let end = device
            .certificate_until
            .as_ref()
            .and_then(|end| end.parse::<Timestamp>().ok());
        if let Some(end) = end.filter(|end| end.duration_since(now) < ENDS_SOON) {
            found.push(format!(
                "the certificate of {} ends at {}",
                device.name,
                wording::time(&end.to_string())
            ));
        }
    }
    let authority = status
        .authority_until
        .as_ref()
        .and_then(|end| end.parse::<Timestamp>().ok());
    if let Some(end) = authority.filter(|end| end.duration_since(now) < ENDS_SOON) {
        found.push(format!(
            "the certificate of the lab's authority ends at {}: make a new lab with `regatta init`, and enroll every device there",
            wording::time(&end.to_string())
        ));
    }
    for row in rows.iter().filter(|row| !row.health.can_take_runs()) {
        let queued = status
            .devices
            .iter()
            .find(|device| device.device == row.id.as_str());
        let queued = queued.map_or(0, |device| device.queued);
        // An operator knows of the maintenance, unless runs wait for its end.
        if row.health.maintenance.is_none() || queued > 0 {
            found.push(format!(
                "{} is {}; {queued} runs wait for it; {}",
                row.name,
                described(&row.health),
                remedy(row)
            ));
        }
    }
    for row in rows.iter().filter(|row| row.duplicated) {
        found.push(format!(
            "two agents use the identity of {}: messages of both are ignored",
            row.name
        ));
    }
    for (device, runs) in store.unknown_runs().all()? {
        let name = rows
            .iter()
            .find(|row| row.id == device)
            .map(|row| row.name.as_str());
        found.push(unknown_runs(name.unwrap_or(device.as_str()), &runs));
    }
    for other in store.devices().other_versions()? {
        found.push(format!(
            "{} speaks wire version {}: update its agent",
            other.device, other.wire
        ));
    }
    let unknown = count_runs_not_in_store(workspace, store)?;
    if unknown > 0 {
        found.push(format!(
            "the store does not know {unknown} recorded runs: {}",
            context.command("runs rebuild")
        ));
    }
    Ok(found)
}

/// Describes the runs that a device holds and the store does not have.
fn unknown_runs(device: &str, runs: &[RunId]) -> String {
    /// The runs that are named.
    const SHOWN: usize = 3;
    let named: Vec<String> = runs.iter().take(SHOWN).map(RunId::to_string).collect();
    let more = match runs.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{device} has {} that this workspace does not know ({}{more}), as happens when an older copy was restored: copy runs/ID/spec.json from the device's state directory into the workspace, and run `regatta runs rebuild`",
        wording::count_of_runs(runs.len()),
        named.join(", ")
    )
}
