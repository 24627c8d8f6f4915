//! The progress of a campaign: its pending cells and the history of runs and devices. It follows the changes of cells, and reads no cell
//! that has not changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use regatta_types::{DeviceId, RunId, documents::EndCause};

use super::{
    heat::{DeviceHeat, Heat, heat},
    placement::{History, PendingCell},
    retry::retryable_on_another_device,
};
use regatta_lab_store::{
    self as store, AttemptRow, CampaignRow, CellRow, CellState, Combination, Placement, Store,
};

/// The progress of a campaign as of one revision.
#[derive(Debug)]
pub(super) struct Progress {
    /// The revision of the last update. `None` before the first one.
    revision: Option<u64>,
    combinations: Vec<Combination>,
    /// How much each combination heats a device.
    heat: Vec<Heat>,
    /// The devices that may take each combination.
    candidates: Vec<Arc<BTreeSet<DeviceId>>>,
    cells: BTreeMap<u64, Cell>,
    /// The cells that need an attempt, by their place in the campaign's order.
    pending: BTreeMap<u64, PendingCell>,
    /// The audits of each cell.
    audits: BTreeMap<u64, BTreeSet<u64>>,
    open_attempts: usize,
    history: History,
    device_heat: DeviceHeat,
    /// The attempts that bind a combination to their device, by the cell's place and the attempt's number. The last one counts.
    bindings: BTreeMap<u64, BTreeMap<(u64, u64), DeviceId>>,
}

#[derive(Debug)]
struct Cell {
    row: CellRow,
    attempts: Vec<AttemptRow>,
}

impl Progress {
    /// Returns the progress of a campaign without its cells. [`Self::update`] reads them.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn new(store: &Store, campaign: &CampaignRow) -> store::Result<Self> {
        let combinations = store.cells().combinations(&campaign.name)?;
        let is_same = |combination: &&Combination| combination.placement == Placement::Same;
        let candidates = |combination: &Combination| Arc::new(combination.devices.iter().cloned().collect());
        Ok(Self {
            revision: None,
            candidates: combinations.iter().map(candidates).collect(),
            heat: combinations.iter().map(heat).collect(),
            device_heat: DeviceHeat::default(),
            cells: BTreeMap::new(),
            pending: BTreeMap::new(),
            audits: BTreeMap::new(),
            open_attempts: 0,
            history: History {
                same: combinations
                    .iter()
                    .filter(is_same)
                    .map(|row| row.number)
                    .collect(),
                ..History::default()
            },
            bindings: BTreeMap::new(),
            combinations,
        })
    }

    /// Reads the cells that have changed since the last update. Returns their number.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn update(&mut self, store: &Store, campaign: &CampaignRow) -> store::Result<usize> {
        if self.revision == Some(campaign.revision) {
            return Ok(0);
        }
        let cells = store.cells().changed(&campaign.name, self.revision)?;
        let mut attempts: BTreeMap<u64, Vec<AttemptRow>> = BTreeMap::new();
        for attempt in store.attempts().of_changed_cells(&campaign.name, self.revision)? {
            attempts.entry(attempt.cell).or_default().push(attempt);
        }
        let count = cells.len();
        let changed: Vec<u64> = cells.iter().map(|row| row.number).collect();
        for row in cells {
            let attempts = attempts.remove(&row.number).unwrap_or_default();
            self.replace(Cell { row, attempts });
        }
        // Whether a cell is pending also depends on the cells that it audits.
        let audits = changed.iter().filter_map(|number| self.audits.get(number));
        let audits: BTreeSet<u64> = audits.flatten().copied().collect();
        for number in changed.into_iter().chain(audits) {
            self.refresh_pending(number);
        }
        // A change since the campaign was read is read again, which changes nothing.
        self.revision = Some(campaign.revision);
        Ok(count)
    }

    /// Replaces the state of a cell.
    fn replace(&mut self, cell: Cell) {
        if let Some(old) = self.cells.remove(&cell.row.number) {
            self.count(&old, false);
        }
        self.count(&cell, true);
        if let Some(audited) = cell.row.audited {
            for number in [audited.performance, audited.accuracy] {
                self.audits.entry(number).or_default().insert(cell.row.number);
            }
        }
        self.cells.insert(cell.row.number, cell);
    }

    fn refresh_pending(&mut self, number: u64) {
        let Some(cell) = self.cells.get(&number) else {
            return;
        };
        let (position, pending) = (cell.row.position, self.pending_cell(cell));
        match pending {
            Some(pending) => self.pending.insert(position, pending),
            None => self.pending.remove(&position),
        };
    }

    /// Returns the runs that an audit cell audits, the performance run first. Returns `None` while either of their cells is not good yet, and for
    /// cells that are not audits.
    pub(super) fn audited_runs(&self, cell: u64) -> Option<(RunId, RunId)> {
        let audited = self.cells.get(&cell)?.row.audited?;
        Some((
            self.good_run(audited.performance)?,
            self.good_run(audited.accuracy)?,
        ))
    }

    fn good_run(&self, cell: u64) -> Option<RunId> {
        let cell = self
            .cells
            .get(&cell)
            .filter(|cell| cell.row.state == CellState::Good)?;
        let is_good = |attempt: &&AttemptRow| attempt.ended.is_some() && attempt.cause.is_none();
        cell.attempts.iter().rev().find(is_good)?.run
    }

    /// Adds a cell's attempts to the history, or takes them out of it.
    fn count(&mut self, cell: &Cell, is_added: bool) {
        let combination = cell.row.combination;
        for attempt in &cell.attempts {
            let key = (combination, attempt.device.clone());
            let times = self.history.attempts.entry(key.clone()).or_default();
            *times = if is_added {
                *times + 1
            } else {
                times.saturating_sub(1)
            };
            if *times == 0 {
                self.history.attempts.remove(&key);
            }
            // A refused attempt has not run.
            let has_run = attempt.run.is_some() || attempt.session.is_some();
            if is_added && has_run {
                self.device_heat.add(attempt, self.heat_of(combination));
            } else {
                self.device_heat.remove(attempt);
            }
            match self.device_heat.last(&attempt.device) {
                Some(heat) => self.history.last_heat.insert(attempt.device.clone(), heat),
                None => self.history.last_heat.remove(&attempt.device),
            };
            if attempt.ended.is_none() {
                self.open_attempts = if is_added {
                    self.open_attempts + 1
                } else {
                    self.open_attempts.saturating_sub(1)
                };
            }
            let binds = attempt.ended.is_none() || attempt.cause.is_none();
            if binds && self.history.same.contains(&combination) {
                let bindings = self.bindings.entry(combination).or_default();
                let place = (cell.row.position, attempt.number);
                if is_added {
                    bindings.insert(place, attempt.device.clone());
                } else {
                    bindings.remove(&place);
                }
            }
        }
        match self.bindings.get(&combination).and_then(BTreeMap::last_key_value) {
            Some((_, device)) => self.history.bound.insert(combination, device.clone()),
            None => self.history.bound.remove(&combination),
        };
    }

    fn heat_of(&self, combination: u64) -> Heat {
        let index = usize::try_from(combination).ok();
        index
            .and_then(|index| self.heat.get(index))
            .copied()
            .unwrap_or_default()
    }

    fn pending_cell(&self, cell: &Cell) -> Option<PendingCell> {
        let is_open = cell.attempts.iter().any(|attempt| attempt.ended.is_none());
        let lacks_runs = cell.row.audited.is_some() && self.audited_runs(cell.row.number).is_none();
        if cell.row.state != CellState::Waiting || is_open || lacks_runs {
            return None;
        }
        let index = usize::try_from(cell.row.combination).ok()?;
        let combination = self.combinations.get(index)?;
        let counted = || {
            let attempts = cell.attempts.iter();
            attempts.filter(|attempt| attempt.number > cell.row.counted_from)
        };
        let failed_on = counted().filter(|attempt| attempt.cause.is_some_and(retryable_on_another_device));
        let last = counted().next_back();
        Some(PendingCell {
            number: cell.row.number,
            combination: cell.row.combination,
            wave: (-combination.priority, cell.row.repetition),
            heat: self.heat_of(cell.row.combination),
            candidates: match &cell.row.device {
                Some(device) => Arc::new(BTreeSet::from([device.clone()])),
                None => Arc::clone(self.candidates.get(index)?),
            },
            failed_on: failed_on.map(|attempt| attempt.device.clone()).collect(),
            pinned_to: last
                .filter(|attempt| attempt.cause == Some(EndCause::Invalid))
                .map(|attempt| attempt.device.clone()),
        })
    }

    /// Returns every combination.
    pub(super) fn combinations(&self) -> &[Combination] {
        &self.combinations
    }

    pub(super) fn combination_of(&self, cell: u64) -> Option<&Combination> {
        let combination = self.cells.get(&cell)?.row.combination;
        self.combinations.get(usize::try_from(combination).ok()?)
    }

    /// Returns whether a cell has a candidate on which it has not failed, besides the device of its last attempt.
    pub(super) fn has_other_device(&self, cell: u64, last: &DeviceId, earlier: &[&AttemptRow]) -> bool {
        let is_bound = self.cells.get(&cell).is_none_or(|cell| cell.row.device.is_some());
        let Some(combination) = self.combination_of(cell).filter(|_| !is_bound) else {
            return false;
        };
        let has_failed = |device: &DeviceId| {
            let mut failed = earlier
                .iter()
                .filter(|attempt| attempt.cause.is_some_and(retryable_on_another_device));
            failed.any(|attempt| attempt.device == *device)
        };
        let mut candidates = combination.devices.iter();
        candidates.any(|device| device != last && !has_failed(device))
    }

    pub(super) const fn open_attempts(&self) -> usize {
        self.open_attempts
    }

    /// Returns the cells that need an attempt, in the campaign's order.
    pub(super) fn pending(&self) -> impl Iterator<Item = &PendingCell> + Clone {
        self.pending.values()
    }

    /// Returns the history of runs and devices. Repetitions that shall run on one device are bound to it by an open or a good attempt.
    pub(super) const fn history(&self) -> &History {
        &self.history
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Instant};

    use proptest::prelude::*;
    use regatta_types::Scenario;

    use super::*;
    use regatta_lab_store::{
        AttemptEnd, AttemptWork, CampaignState, NewAttempt, NewCampaign, NewCell, RunOutcome, RunRequest,
        examples::{example_draft, example_record},
    };

    const NAME: &str = "many";

    fn device(number: u64) -> DeviceId {
        format!("{number:02x}").repeat(16).parse().unwrap()
    }

    fn store_with(cells: u64) -> Store {
        let store = Store::open(Path::new(":memory:")).unwrap();
        let row = CampaignRow {
            name: NAME.to_owned(),
            plan_sha256: String::new(),
            seed: 0,
            retries: 2,
            rate_retries: 2,
            lose_after_s: 600,
            deadline: None,
            state: CampaignState::Running,
            started: "2026-01-01T00:00:00Z".to_owned(),
            ended: None,
            revision: 0,
        };
        let combination = |number: u64, placement| Combination {
            meter: None,
            number,
            request: RunRequest::new("digits", Scenario::Offline),
            variant: None,
            audit: None,
            placement,
            priority: 0,
            devices: (0..50).map(device).collect(),
        };
        let combinations = [combination(0, Placement::Any), combination(1, Placement::Same)];
        let cells: Vec<NewCell> = (1..=cells)
            .map(|number| NewCell {
                number,
                combination: number % 2,
                repetition: number / 2,
                device: None,
                audited: None,
            })
            .collect();
        let new = NewCampaign {
            row: &row,
            plan: "",
            combinations: &combinations,
            cells: &cells,
            pins_software: false,
        };
        assert!(store.campaigns().add(&new).unwrap());
        store
    }

    fn begin(store: &Store, cell: u64, number: u64) {
        let device = device(number);
        let new = NewAttempt {
            campaign: NAME,
            cell,
            device: &device,
            now: "2026-01-01T00:00:00Z",
        };
        let draft = example_draft(device.clone());
        store.attempts().begin(new, AttemptWork::Run(&draft)).unwrap();
    }

    fn end(store: &Store, cell: u64, cause: Option<EndCause>) {
        let open = store.attempts().open().unwrap();
        let Some(attempt) = open.iter().find(|attempt| attempt.cell == cell) else {
            return;
        };
        // The run ends with its attempt, so that the device is idle again.
        store.runs().request_abort(attempt.run.unwrap(), "over").unwrap();
        let end = AttemptEnd {
            cause,
            reason: cause.map(|_| "it failed"),
            is_tried_again: cause.is_some_and(retryable_on_another_device),
            run: None,
            now: "2026-01-01T01:00:00Z",
        };
        store.attempts().end(attempt, end).unwrap();
    }

    fn update(progress: &mut Progress, store: &Store) -> usize {
        let campaign = store.campaigns().get(NAME).unwrap().unwrap();
        progress.update(store, &campaign).unwrap()
    }

    fn fresh(store: &Store) -> Progress {
        let campaign = store.campaigns().get(NAME).unwrap().unwrap();
        let mut progress = Progress::new(store, &campaign).unwrap();
        update(&mut progress, store);
        progress
    }

    /// The same test counted 10,000 cells for each change when every change read them all.
    #[test]
    fn changing_one_of_ten_thousand_cells_reads_one_row() {
        let store = store_with(10_000);
        let begun = Instant::now();
        let mut progress = fresh(&store);
        let all = begun.elapsed();
        assert_eq!(
            (progress.cells.len(), progress.pending().count()),
            (10_000, 10_000)
        );
        let begun = Instant::now();
        for cell in 1..=20 {
            begin(&store, cell, cell);
            assert_eq!(update(&mut progress, &store), 1);
            assert_eq!(update(&mut progress, &store), 0);
        }
        println!(
            "10,000 cells: {all:?} for all, {:?} for a change",
            begun.elapsed() / 20
        );
        assert_eq!(
            (progress.open_attempts(), progress.pending().count()),
            (20, 9_980)
        );
        end(&store, 1, Some(EndCause::Device));
        end(&store, 2, None);
        assert_eq!(update(&mut progress, &store), 2);
        assert_eq!(
            (progress.open_attempts(), progress.pending().count()),
            (18, 9_981)
        );
        assert_eq!(
            progress.pending().next().unwrap().failed_on,
            BTreeSet::from([device(1)])
        );
    }

    /// Its cell has another attempt, and one good run is enough.
    #[test]
    fn a_run_that_returns_after_its_attempt_is_aborted_and_not_counted() {
        let store = store_with(1);
        begin(&store, 1, 1);
        let attempt = store.attempts().open().unwrap().remove(0);
        let run = attempt.run.unwrap();
        store.runs().fix_spec(run, "00").unwrap();
        store.runs().mark_lost(run, "its state was lost").unwrap();
        assert!(
            store.runs().reopen(&device(1), run).unwrap(),
            "the attempt is open"
        );
        store.runs().mark_lost(run, "its state was lost").unwrap();
        let row = store.runs().get(run).unwrap().unwrap();
        let record = example_record(&row, &row.state);
        assert!(
            store
                .runs()
                .record(&row, &record, &RunOutcome::default())
                .unwrap()
        );
        let end = AttemptEnd {
            cause: Some(EndCause::Device),
            reason: Some("its state was lost"),
            is_tried_again: true,
            run: None,
            now: "2026-01-01T01:00:00Z",
        };
        store.attempts().end(&attempt, end).unwrap();
        assert!(!store.runs().reopen(&device(1), run).unwrap());
        assert!(store.runs().get(run).unwrap().unwrap().is_over());
        let aborts = store.runs().pending_aborts(&device(1)).unwrap();
        assert_eq!(aborts.len(), 1);
        assert_eq!(aborts[0].0, run, "it gets no other run meanwhile");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Following the changes gives what reading everything gives.
        #[test]
        fn followed_progress_equals_the_progress_that_is_read(
            steps in prop::collection::vec((1_u64..8, 0_u64..4, 0_u8..8), 1..40),
        ) {
            let store = store_with(7);
            let mut progress = fresh(&store);
            for (cell, number, step) in steps {
                match step {
                    0..3 => begin(&store, cell, number),
                    3 => end(&store, cell, None),
                    4 => end(&store, cell, Some(EndCause::Device)),
                    5 => end(&store, cell, Some(EndCause::Workload)),
                    6 => drop(store.cells().retry(NAME, EndCause::Workload, "operator").unwrap()),
                    _ => {
                        update(&mut progress, &store);
                    }
                }
            }
            update(&mut progress, &store);
            let read = fresh(&store);
            prop_assert_eq!(&progress.pending, &read.pending);
            prop_assert_eq!(&progress.history, &read.history);
            prop_assert_eq!(progress.open_attempts, read.open_attempts);
        }
    }
}
