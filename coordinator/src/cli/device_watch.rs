//! Watches the devices of runs that are waited for: whether each is online, silent or offline. It only reads the store.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use regatta_types::{DeviceId, documents::RunPhase};

use super::health_text::{described, remedy};
use crate::exit::Failure;
use regatta_lab_store::{DeviceRow, RunRow, Store};
use regatta_lab_views::wording;

/// The presence of a device: whether the coordinator receives its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Heard,
    Silent,
    Offline,
}

/// The devices' presence, as far as it was reported.
#[derive(Debug, Default)]
pub(super) struct DeviceWatch {
    devices: BTreeMap<DeviceId, Presence>,
    has_reported_broker: bool,
    /// The devices that take no runs, as far as it was reported.
    unavailable: BTreeSet<DeviceId>,
}

/// The result of one look at the devices.
#[derive(Debug, Default)]
pub(super) struct DeviceReport {
    /// A sentence for each change since the last look.
    pub(super) changes: Vec<String>,
    /// A few words for each device that sends no messages.
    pub(super) absent: BTreeMap<DeviceId, String>,
}

impl DeviceWatch {
    /// Looks at the devices of the open runs among `rows`.
    pub(super) fn look(&mut self, rows: &[RunRow], store: &Store) -> Result<DeviceReport, Failure> {
        let mut report = DeviceReport::default();
        let lost = store.service().state()?.broker_lost;
        if let Some(since) = &lost
            && !self.has_reported_broker
        {
            let since = wording::ago(since, Timestamp::now());
            report.changes.push(format!(
                "the coordinator lost the broker {since}: no messages of devices arrive until it is back; runs continue"
            ));
        }
        self.has_reported_broker = lost.is_some();
        let mut seen: Vec<&DeviceId> = Vec::new();
        for row in rows.iter().filter(|row| !row.is_over()) {
            if seen.contains(&&row.device) {
                continue;
            }
            seen.push(&row.device);
            if let Some(device) = store.devices().get(&row.device)? {
                self.look_at(&device, rows, lost.is_some(), &mut report);
                self.look_at_health(&device, rows, &mut report);
            }
        }
        Ok(report)
    }

    /// Reports that runs wait for a device that takes none.
    fn look_at_health(&mut self, device: &DeviceRow, rows: &[RunRow], report: &mut DeviceReport) {
        let waits = |row: &RunRow| {
            row.device == device.id && row.spec_sha256.is_none() && !row.draft.forced && !row.is_over()
        };
        if device.health.can_take_runs() || !rows.iter().any(waits) {
            self.unavailable.remove(&device.id);
            return;
        }
        let health = device.health.health().as_str();
        report
            .absent
            .entry(device.id.clone())
            .or_insert_with(|| format!("device in health {health}"));
        if self.unavailable.insert(device.id.clone()) {
            report.changes.push(format!(
                "{} is {}: its runs wait; {}",
                device.name,
                described(&device.health),
                remedy(device)
            ));
        }
    }

    fn look_at(
        &mut self,
        device: &DeviceRow,
        rows: &[RunRow],
        is_broker_lost: bool,
        report: &mut DeviceReport,
    ) {
        let now = Timestamp::now();
        let silence = wording::age(&device.last_seen, now).unwrap_or(0);
        let presence = match device.online {
            false => Presence::Offline,
            true if silence >= device.silent_after_s() => Presence::Silent,
            true => Presence::Heard,
        };
        let ago = wording::ago(&device.last_seen, now);
        match presence {
            Presence::Heard => {}
            Presence::Silent => {
                report
                    .absent
                    .insert(device.id.clone(), format!("device silent for {silence} s"));
            }
            Presence::Offline => {
                report
                    .absent
                    .insert(device.id.clone(), format!("device offline, last seen {ago}"));
            }
        }
        let before = self.devices.insert(device.id.clone(), presence);
        if before == Some(presence) || (before.is_none() && presence == Presence::Heard) {
            return;
        }
        let name = &device.name;
        let is_begun = rows.iter().any(|row| {
            row.device == device.id && !row.is_over() && !matches!(row.state.phase, RunPhase::Queued)
        });
        match presence {
            Presence::Heard => report.changes.push(format!("{name} is back")),
            Presence::Silent => report
                .changes
                .push(format!("{name} has been silent for {silence} s")),
            // One sentence about the broker is enough.
            Presence::Offline if is_broker_lost => {}
            Presence::Offline if is_begun => report.changes.push(format!(
                "{name} is offline, last seen {ago}: its run may still be running; its logs arrive when it is back"
            )),
            Presence::Offline => report.changes.push(format!(
                "{name} is offline, last seen {ago}: its runs start when it is back"
            )),
        }
    }
}
