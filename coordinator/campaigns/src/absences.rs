//! The absences of devices: since when each is absent or takes no cells, as this scheduler has seen it, and the consequence for a cell that
//! needs them. It ends nothing itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use regatta_types::{DeviceId, documents::EndCause};

use super::eligibility::{is_eligible, is_present};
use regatta_lab_store::{CampaignRow, DeviceHealth, DeviceRow};

/// The absences of devices, measured by the monotonic clock. They begin anew with each scheduler.
pub(super) struct Absences {
    /// The time when each absent device became absent.
    absent_since: BTreeMap<DeviceId, Instant>,
    /// The time when each device stopped taking cells: it is absent, quarantined or in maintenance.
    ineligible_since: BTreeMap<DeviceId, Instant>,
    /// The time when each unfinished campaign was first followed. No absence counts that is older.
    followed_since: BTreeMap<String, Instant>,
}

impl Absences {
    pub(super) const fn new() -> Self {
        Self {
            absent_since: BTreeMap::new(),
            ineligible_since: BTreeMap::new(),
            followed_since: BTreeMap::new(),
        }
    }

    /// Follows exactly these campaigns.
    pub(super) fn follow(&mut self, unfinished: &BTreeSet<&str>, now: Instant) {
        self.followed_since
            .retain(|name, _| unfinished.contains(name.as_str()));
        for name in unfinished {
            self.followed_since.entry((*name).to_owned()).or_insert(now);
        }
    }

    /// Forgets every absence.
    pub(super) fn forget(&mut self) {
        self.absent_since.clear();
        self.ineligible_since.clear();
    }

    /// Notes which devices are absent, and which take no cells.
    pub(super) fn note(&mut self, devices: &[DeviceRow], now: Instant) {
        for device in devices {
            note(&mut self.absent_since, device, !is_present(device), now);
            note(&mut self.ineligible_since, device, !is_eligible(device), now);
        }
    }

    /// Returns the seconds for which a device has been absent, if the campaign loses it after that time.
    pub(super) fn absent_for(&self, device: &DeviceId, campaign: &CampaignRow, now: Instant) -> Option<u64> {
        self.lost_for(&self.absent_since, device, campaign, now)
    }

    /// Returns the seconds for which a device has taken no cells, if the campaign loses it after that time.
    pub(super) fn ineligible_for(
        &self,
        device: &DeviceId,
        campaign: &CampaignRow,
        now: Instant,
    ) -> Option<u64> {
        self.lost_for(&self.ineligible_since, device, campaign, now)
    }

    fn lost_for(
        &self,
        since: &BTreeMap<DeviceId, Instant>,
        device: &DeviceId,
        campaign: &CampaignRow,
        now: Instant,
    ) -> Option<u64> {
        let followed_since = self.followed_since.get(&campaign.name)?;
        let since = since.get(device)?.max(followed_since);
        let seconds = now.duration_since(*since).as_secs();
        (seconds >= campaign.lose_after_s).then_some(seconds)
    }
}

/// Notes since when something holds for a device.
fn note(since: &mut BTreeMap<DeviceId, Instant>, device: &DeviceRow, holds: bool, now: Instant) {
    if holds {
        since.entry(device.id.clone()).or_insert(now);
    } else {
        since.remove(&device.id);
    }
}

/// Returns the word for the reason why a device takes no cells. `None` means a removed device.
pub(super) const fn why_not(device: Option<&DeviceRow>) -> &'static str {
    match device {
        None => "removed",
        Some(row) if is_present(row) => match row.health.health() {
            DeviceHealth::Maintenance => "in maintenance",
            health => health.as_str(),
        },
        Some(row) => row.activity().as_str(),
    }
}

/// Returns the cause of a cell that no device has taken: the first that holds of absent, quarantined and drained.
pub(super) fn cause_of_absence(devices: &[Option<&DeviceRow>]) -> EndCause {
    let present = || devices.iter().flatten().filter(|device| is_present(device));
    if present().count() < devices.len() {
        EndCause::Infrastructure
    } else if present().any(|device| device.health.health() == DeviceHealth::Quarantined) {
        EndCause::Device
    } else {
        EndCause::Operator
    }
}
