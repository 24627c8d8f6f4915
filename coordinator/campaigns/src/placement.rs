//! Decides which waiting cell goes to which idle device. It is a pure function of the campaign and the fleet: no clock, no store.
//!
//! Cells are taken in their order, in waves: one priority and one repetition. Within a wave a device takes the combination that it
//! has run least, so that the repetitions of a combination spread over devices. Among these it takes the one whose heat differs most from
//! its last attempt's, so that hot runs alternate with cool ones. A cell that failed on a device goes to another one while
//! there is another. A cell that is tried again at a measured rate stays on its device, because the rate is that device's.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use regatta_types::DeviceId;

use super::heat::Heat;

/// A cell that needs an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingCell {
    /// Its number.
    pub(super) number: u64,
    pub(super) combination: u64,
    /// Its wave: priority and repetition.
    pub(super) wave: (i64, u64),
    /// How much it heats a device.
    pub(super) heat: Heat,
    /// The devices that may take it.
    pub(super) candidates: Arc<BTreeSet<DeviceId>>,
    pub(super) failed_on: BTreeSet<DeviceId>,
    /// The device whose measured rate it needs.
    pub(super) pinned_to: Option<DeviceId>,
}

/// The fleet, as far as placement needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FleetView {
    /// The devices without an open run, in the order that the seed fixes.
    pub(super) idle: Vec<DeviceId>,
    /// The devices that may take cells now or soon: idle and busy ones.
    pub(super) present: BTreeSet<DeviceId>,
}

/// The runs of the campaign so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct History {
    /// The number of times that each device has run each combination.
    pub(super) attempts: BTreeMap<(u64, DeviceId), u64>,
    /// The heat of each device's last attempt.
    pub(super) last_heat: BTreeMap<DeviceId, Heat>,
    /// The device of each combination whose repetitions all run on one device.
    pub(super) bound: BTreeMap<u64, DeviceId>,
    /// The combinations whose repetitions all run on one device.
    pub(super) same: BTreeSet<u64>,
}

/// An attempt to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NextAttempt {
    pub(super) cell: u64,
    pub(super) device: DeviceId,
}

impl PendingCell {
    /// Returns whether a device may take the cell now.
    fn may_run_on(&self, device: &DeviceId, fleet: &FleetView, bound: &BTreeMap<u64, DeviceId>) -> bool {
        if !self.candidates.contains(device) {
            return false;
        }
        if let Some(bound) = bound.get(&self.combination) {
            return bound == device;
        }
        if let Some(pinned) = self
            .pinned_to
            .as_ref()
            .filter(|pinned| fleet.present.contains(pinned))
        {
            return pinned == device;
        }
        let is_better = |other: &DeviceId| fleet.present.contains(other) && !self.failed_on.contains(other);
        !self.failed_on.contains(device) || !self.candidates.iter().any(is_better)
    }

    /// Returns whether any present device may ever take the cell.
    pub(super) fn has_device(&self, fleet: &FleetView, history: &History) -> bool {
        match history.bound.get(&self.combination) {
            Some(bound) => fleet.present.contains(bound),
            None => self
                .candidates
                .iter()
                .any(|device| fleet.present.contains(device)),
        }
    }
}

/// Returns the attempts to begin now, at most one on each idle device and at most one of each cell. `cells` are in the campaign's order.
pub(super) fn next_attempts<'a>(
    cells: impl Iterator<Item = &'a PendingCell> + Clone,
    fleet: &FleetView,
    history: &History,
) -> Vec<NextAttempt> {
    let mut bound = history.bound.clone();
    let mut taken = BTreeSet::new();
    let mut next = Vec::new();
    for device in &fleet.idle {
        // A device takes one cell, so the attempts of this round do not change how often it has run a combination.
        let possible = cells
            .clone()
            .filter(|cell| !taken.contains(&cell.number) && cell.may_run_on(device, fleet, &bound));
        let Some(cell) = best_cell(possible, device, history) else {
            continue;
        };
        taken.insert(cell.number);
        if history.same.contains(&cell.combination) {
            bound.insert(cell.combination, device.clone());
        }
        next.push(NextAttempt {
            cell: cell.number,
            device: device.clone(),
        });
    }
    next
}

/// Returns the cell that a device takes: of the first wave with a cell for it, the combination that it has run least, and of several the one
/// whose heat differs most from that of its last attempt.
fn best_cell<'a>(
    possible: impl Iterator<Item = &'a PendingCell>,
    device: &DeviceId,
    history: &History,
) -> Option<&'a PendingCell> {
    let mut possible = possible.peekable();
    let wave = possible.peek()?.wave;
    let times = |cell: &&PendingCell| {
        let key = (cell.combination, device.clone());
        history.attempts.get(&key).copied().unwrap_or(0)
    };
    let last = history.last_heat.get(device);
    let change = |cell: &&PendingCell| last.map_or(0, |last| last.abs_diff(cell.heat));
    // The first of equals, which is the earliest in the campaign's order.
    possible
        .take_while(|cell| cell.wave == wave)
        .min_by_key(|cell| (times(cell), Reverse(change(cell))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn device(number: u8) -> DeviceId {
        format!("{number:02x}").repeat(16).parse().unwrap()
    }

    fn cell(number: u64, combination: u64, repetition: u64, candidates: &[DeviceId]) -> PendingCell {
        PendingCell {
            number,
            combination,
            wave: (0, repetition),
            heat: 0,
            candidates: Arc::new(candidates.iter().cloned().collect()),
            failed_on: BTreeSet::new(),
            pinned_to: None,
        }
    }

    fn all_idle(devices: &[DeviceId]) -> FleetView {
        FleetView {
            idle: devices.to_vec(),
            present: devices.iter().cloned().collect(),
        }
    }

    /// Runs every cell to a good end, and returns which device ran which cells.
    fn run_all(mut cells: Vec<PendingCell>, devices: &[DeviceId], history: &mut History) -> Vec<NextAttempt> {
        let mut all = Vec::new();
        while !cells.is_empty() {
            let next = next_attempts(cells.iter(), &all_idle(devices), history);
            assert!(!next.is_empty(), "{cells:?} wait for ever");
            for attempt in &next {
                let cell = cells.iter().find(|cell| cell.number == attempt.cell).unwrap();
                let combination = cell.combination;
                let key = (combination, attempt.device.clone());
                *history.attempts.entry(key).or_default() += 1;
                history.last_heat.insert(attempt.device.clone(), cell.heat);
                if history.same.contains(&combination) {
                    let bound = history.bound.entry(combination).or_insert(attempt.device.clone());
                    assert_eq!(*bound, attempt.device);
                }
            }
            cells.retain(|cell| next.iter().all(|attempt| attempt.cell != cell.number));
            all.extend(next);
        }
        all
    }

    #[test]
    fn repetitions_are_interleaved_over_time_and_over_devices() {
        let devices = [device(1), device(2)];
        let cells = (1..=2)
            .flat_map(|repetition| [(1, repetition), (2, repetition)])
            .enumerate()
            .map(|(index, (combination, repetition))| {
                cell(index as u64 + 1, combination, repetition, &devices)
            })
            .collect();
        let order: Vec<(u64, DeviceId)> = run_all(cells, &devices, &mut History::default())
            .into_iter()
            .map(|attempt| (attempt.cell, attempt.device))
            .collect();
        // Cells 1 and 3 are combination A, 2 and 4 are B: each device runs both.
        assert_eq!(
            order,
            [(1, device(1)), (2, device(2)), (4, device(1)), (3, device(2))]
        );
    }

    #[test]
    fn hot_cells_alternate_with_cool_ones() {
        let devices = [device(1)];
        let heat = [3, 3, 1, 3, 1, 1];
        let cells: Vec<PendingCell> = (0..6)
            .map(|index| PendingCell {
                heat: heat[index as usize],
                ..cell(index, index, 1, &devices)
            })
            .collect();
        let order: Vec<u64> = run_all(cells, &devices, &mut History::default())
            .iter()
            .map(|attempt| attempt.cell)
            .collect();
        assert_eq!(order, [0, 2, 1, 4, 3, 5]);
    }

    #[test]
    fn a_failed_cell_goes_elsewhere_while_there_is_another_device() {
        let devices = [device(1), device(2)];
        let mut failed = cell(1, 1, 1, &devices);
        failed.failed_on.insert(device(1));
        let only_first_idle = FleetView {
            idle: vec![device(1)],
            ..all_idle(&devices)
        };
        let cells = [failed];
        let history = History::default();
        assert_eq!(
            next_attempts(cells.iter(), &only_first_idle, &history),
            [],
            "the other is busy"
        );
        let alone = all_idle(&devices[..1]);
        assert_eq!(next_attempts(cells.iter(), &alone, &history)[0].device, device(1));
        assert_eq!(
            next_attempts(cells.iter(), &all_idle(&devices), &history)[0].device,
            device(2)
        );
    }

    #[test]
    fn a_measured_rate_stays_on_its_device() {
        let devices = [device(1), device(2)];
        let mut pinned = cell(1, 1, 1, &devices);
        pinned.pinned_to = Some(device(2));
        let cells = [pinned];
        let next = next_attempts(cells.iter(), &all_idle(&devices), &History::default());
        assert_eq!(next[0].device, device(2));
        let without = all_idle(&devices[..1]);
        let next = next_attempts(cells.iter(), &without, &History::default());
        assert_eq!(next[0].device, device(1), "the other has gone");
    }

    proptest! {
        /// Every cell gets a device, none gets two, and no device gets two cells at once.
        #[test]
        fn every_cell_ends_and_nothing_is_doubled(
            plan in prop::collection::vec((0_u64..6, 1_u64..4, prop::collection::btree_set(0_u8..5, 1..5)), 1..40),
            same in prop::collection::btree_set(0_u64..6, 0..3),
            failures in prop::collection::vec((0_usize..40, 0_u8..5), 0..20),
        ) {
            let devices: Vec<DeviceId> = (0..5).map(device).collect();
            // All cells of a combination have the same candidates.
            let mut candidates: BTreeMap<u64, Vec<DeviceId>> = BTreeMap::new();
            for (combination, _, numbers) in &plan {
                candidates.entry(*combination).or_insert_with(|| numbers.iter().map(|&n| device(n)).collect());
            }
            let mut cells: Vec<PendingCell> = plan.iter().enumerate()
                .map(|(index, (combination, repetition, _))| {
                    cell(index as u64 + 1, *combination, *repetition, &candidates[combination])
                })
                .collect();
            cells.sort_by_key(|cell| (cell.wave, cell.number));
            for (index, number) in failures {
                if let Some(cell) = cells.get_mut(index) {
                    cell.failed_on.insert(device(number));
                }
            }
            let expected = cells.len();
            let mut history = History { same, ..History::default() };
            let first = next_attempts(cells.iter(), &all_idle(&devices), &history);
            prop_assert_eq!(&first, &next_attempts(cells.iter(), &all_idle(&devices), &history), "deterministic");
            let used: BTreeSet<&DeviceId> = first.iter().map(|attempt| &attempt.device).collect();
            prop_assert_eq!(used.len(), first.len());
            let all = run_all(cells, &devices, &mut history);
            let numbers: BTreeSet<u64> = all.iter().map(|attempt| attempt.cell).collect();
            prop_assert_eq!((all.len(), numbers.len()), (expected, expected));
        }
    }
}
