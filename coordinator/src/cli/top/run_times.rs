//! The least times of the shown runs, and the wait of the selected device's run. A run's least time never changes, so each run is read
//! once.

use std::collections::{BTreeMap, btree_map::Entry};

use jiff::Timestamp;
use regatta_types::{RunId, documents::RunPhase};

use super::view::TopView;
use regatta_lab_runs::least_seconds;
use regatta_lab_store::{self as store, CurrentRun, Store};
use regatta_lab_views::wording;

/// The times of the shown runs.
#[derive(Debug, Default)]
pub(super) struct RunTimes {
    /// The seconds for which LoadGen measures at least; `None` for accuracy runs.
    least: BTreeMap<RunId, Option<u64>>,
    waits_for: Option<String>,
}

/// The progress of a run in its timed window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunProgress {
    /// Percentage of the least time, at most 100.
    pub(super) percent: u64,
    /// The rest of the least time. 0 when it is over: LoadGen then waits for its other conditions.
    pub(super) left_s: u64,
}

impl RunTimes {
    /// Reads the specs of shown runs that were not read yet.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub(super) fn read(&mut self, view: &TopView, store: &Store) -> store::Result<()> {
        let shown: Vec<&CurrentRun> = view
            .shown()
            .iter()
            .filter_map(|device| device.run.as_ref())
            .collect();
        self.least.retain(|id, _| shown.iter().any(|run| run.id == *id));
        for run in shown.iter().filter(|run| run.phase == RunPhase::Running) {
            if let Entry::Vacant(unknown) = self.least.entry(run.id) {
                let least = store
                    .runs()
                    .get(run.id)?
                    .and_then(|row| least_seconds(&row.draft.spec));
                unknown.insert(least);
            }
        }
        let selected = view.selected().and_then(|device| device.run.as_ref());
        let preparing = selected.filter(|run| run.phase == RunPhase::Preparing);
        self.waits_for = match preparing {
            Some(run) => store.runs().get(run.id)?.and_then(|row| row.state.reason),
            None => None,
        };
        Ok(())
    }

    /// Returns the progress of a run in its timed window, if it has a least time.
    pub(super) fn progress(&self, run: &CurrentRun, now: Timestamp) -> Option<RunProgress> {
        let least = self.least.get(&run.id).copied().flatten()?;
        let elapsed = u64::try_from(wording::age(run.started.as_deref()?, now)?).unwrap_or(0);
        Some(RunProgress {
            percent: (elapsed * 100).checked_div(least).unwrap_or(100).min(100),
            left_s: least.saturating_sub(elapsed),
        })
    }

    /// Returns the condition that the selected device's run waits for.
    pub(super) fn waits_for(&self) -> Option<&str> {
        self.waits_for.as_deref()
    }
}
