//! The progress of a campaign, computed from its cells and attempts.

use std::collections::{BTreeMap, BTreeSet};

use regatta_types::{DeviceId, documents::EndCause};

use super::{
    placement::{History, PendingCell},
    retry::is_of_a_place,
};
use crate::store::{self, AttemptRow, CampaignRow, CellRow, CellState, Combination, Placement, Store};

/// The progress of a campaign as of one revision.
pub(super) struct Progress {
    revision: u64,
    combinations: Vec<Combination>,
    /// In the campaign's order.
    cells: Vec<CellRow>,
    attempts: BTreeMap<u64, Vec<AttemptRow>>,
}

impl Progress {
    /// Reads the progress of a campaign.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn read(store: &Store, campaign: &CampaignRow) -> store::Result<Self> {
        let mut attempts: BTreeMap<u64, Vec<AttemptRow>> = BTreeMap::new();
        for attempt in store.attempts(&campaign.name)? {
            attempts.entry(attempt.cell).or_default().push(attempt);
        }
        Ok(Self {
            revision: campaign.revision,
            combinations: store.combinations(&campaign.name)?,
            cells: store.cells(&campaign.name)?,
            attempts,
        })
    }

    /// The revision that was read.
    pub(super) const fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the combination of a cell.
    pub(super) fn combination_of(&self, cell: u64) -> Option<&Combination> {
        let cell = self.cells.iter().find(|row| row.number == cell)?;
        self.combination(cell.combination)
    }

    /// Returns whether a cell has a candidate on which it has not failed, besides the device of its last attempt.
    pub(super) fn has_other_device(&self, cell: u64, last: &DeviceId, earlier: &[&AttemptRow]) -> bool {
        let Some(row) = self
            .cells
            .iter()
            .find(|row| row.number == cell && row.device.is_none())
        else {
            return false;
        };
        let has_failed = |device: &DeviceId| {
            let mut failed = earlier
                .iter()
                .filter(|attempt| attempt.cause.is_some_and(is_of_a_place));
            failed.any(|attempt| attempt.device == *device)
        };
        let candidates = self.combination(row.combination);
        let mut candidates = candidates.iter().flat_map(|combination| &combination.devices);
        candidates.any(|device| device != last && !has_failed(device))
    }

    fn combination(&self, number: u64) -> Option<&Combination> {
        self.combinations.get(usize::try_from(number).ok()?)
    }

    fn all_attempts(&self) -> impl Iterator<Item = &AttemptRow> {
        self.attempts.values().flatten()
    }

    /// The number of open attempts.
    pub(super) fn open_attempts(&self) -> usize {
        self.all_attempts()
            .filter(|attempt| attempt.ended.is_none())
            .count()
    }

    /// Returns the cells that need an attempt, in the campaign's order.
    pub(super) fn pending(&self) -> Vec<PendingCell<'_>> {
        let is_open = |cell: u64| {
            let mut attempts = self.attempts.get(&cell).into_iter().flatten();
            attempts.any(|attempt| attempt.ended.is_none())
        };
        let waiting = self
            .cells
            .iter()
            .filter(|cell| cell.state == CellState::Waiting && !is_open(cell.number));
        waiting.filter_map(|cell| self.pending_cell(cell)).collect()
    }

    fn pending_cell<'a>(&'a self, cell: &'a CellRow) -> Option<PendingCell<'a>> {
        let combination = self.combination(cell.combination)?;
        let attempts = self.attempts.get(&cell.number).into_iter().flatten();
        let counted: Vec<&AttemptRow> = attempts
            .filter(|attempt| attempt.number > cell.counted_from)
            .collect();
        let failed_on: BTreeSet<DeviceId> = counted
            .iter()
            .filter(|attempt| attempt.cause.is_some_and(is_of_a_place))
            .map(|attempt| attempt.device.clone())
            .collect();
        let pinned_to = counted
            .last()
            .filter(|attempt| attempt.cause == Some(EndCause::Invalid))
            .map(|attempt| attempt.device.clone());
        Some(PendingCell {
            number: cell.number,
            combination: cell.combination,
            wave: (-combination.priority, cell.repetition),
            candidates: match &cell.device {
                Some(device) => std::slice::from_ref(device),
                None => &combination.devices,
            },
            failed_on,
            pinned_to,
        })
    }

    /// Returns what ran where. Repetitions that shall run on one device are bound to it by an open or a good attempt.
    pub(super) fn history(&self) -> History {
        let mut history = History {
            same: self
                .combinations
                .iter()
                .filter(|combination| combination.placement == Placement::Same)
                .map(|combination| combination.number)
                .collect(),
            ..History::default()
        };
        for cell in &self.cells {
            for attempt in self.attempts.get(&cell.number).into_iter().flatten() {
                let key = (cell.combination, attempt.device.clone());
                *history.attempts.entry(key).or_default() += 1;
                let binds = attempt.ended.is_none() || attempt.cause.is_none();
                if binds && history.same.contains(&cell.combination) {
                    history.bound.insert(cell.combination, attempt.device.clone());
                }
            }
        }
        history
    }
}
