//! Fails the waiting cells that no device can take any more, with the state of each device as the reason.

use regatta_types::{
    DeviceId,
    documents::{EndCause, SoftwareFacts},
};

use super::{Now, Scheduler};
use crate::{
    absences::{cause_of_absence, why_not},
    placement::FleetView,
    software,
};
use regatta_lab_store::{CampaignRow, CellFailure, DeviceRow};

/// The number of devices that the reason of a cell without one names.
const NAMED_DEVICES: usize = 4;

impl Scheduler {
    /// Fails waiting cells whose devices have all been lost. Nothing else of the campaign can run then.
    pub(super) fn fail_cells_without_device(
        &self,
        campaign: &CampaignRow,
        devices: &[DeviceRow],
        fleet: &FleetView,
        now: Now,
    ) -> anyhow::Result<()> {
        let Some(progress) = self.progress.get(&campaign.name) else {
            return Ok(());
        };
        let history = progress.history();
        let changed = self
            .store
            .campaigns()
            .devices_with_other_software(&campaign.name)?;
        let mut failures = Vec::new();
        for cell in progress.pending() {
            if cell.has_device(fleet, history) {
                continue;
            }
            let needed: Vec<&DeviceId> = match history.bound.get(&cell.combination) {
                Some(bound) => vec![bound],
                None => cell.candidates.iter().collect(),
            };
            let is_lost = |device: &&DeviceId| {
                let is_removed = !devices.iter().any(|row| row.id == **device);
                is_removed
                    || changed.contains_key(*device)
                    || self
                        .absences
                        .ineligible_for(device, campaign, now.instant)
                        .is_some()
            };
            if needed.iter().all(is_lost) {
                let row = |id: &DeviceId| devices.iter().find(|row| row.id == *id);
                let rows: Vec<Option<&DeviceRow>> = needed.iter().map(|id| row(id)).collect();
                let mut states = Vec::new();
                // Those whose software decides come first: an operator can return them to it.
                let mut named: Vec<_> = needed.iter().zip(&rows).collect();
                named.sort_by_key(|(id, _)| !changed.contains_key(**id));
                for (id, row) in named.into_iter().take(NAMED_DEVICES) {
                    let state = match changed.get(*id) {
                        Some(then) => format!(
                            ": {}",
                            software::change(then.as_ref(), software_of(*row).as_ref())
                        ),
                        None => format!(" is {}", why_not(*row)),
                    };
                    states.push(format!("{}{state}", self.device_name(id)?));
                }
                if needed.len() > NAMED_DEVICES {
                    states.push(format!("and {} more", needed.len() - NAMED_DEVICES));
                }
                let states = states.join(", ");
                let (cause, reason) = if needed.iter().any(|device| changed.contains_key(*device)) {
                    (
                        EndCause::Precondition,
                        format!("no device may take it: {states}; {}", software::HINT),
                    )
                } else {
                    let reason = format!("no device has taken it for {} s: {states}", campaign.lose_after_s);
                    (cause_of_absence(&rows), reason)
                };
                failures.push(CellFailure {
                    cell: cell.number,
                    cause,
                    reason,
                });
            }
        }
        self.store.cells().fail(&campaign.name, &failures)?;
        Ok(())
    }
}

/// Returns the software that a device stated last.
fn software_of(device: Option<&DeviceRow>) -> Option<SoftwareFacts> {
    device?.reported_facts().ok()?.software
}
