//! Inventories: the lists of runs that devices hold, assembled from pages, and their effect on the runs.
//!
//! A run that is missing from a complete inventory is no longer on the device. An abandoned run that is listed is reopened.
//! Hellos decide neither, because their list may be truncated.

use std::collections::{BTreeMap, BTreeSet};

use regatta_types::{DeviceId, RunId, documents::end_reason};
use regatta_wire::message::{HeldRun, Inventory, RunHolding};

use regatta_lab_store::{self as store, HeardSession, Store};

/// The maximum number of pages of an inventory: 65,536 runs.
const PAGES: u16 = 32;

/// The pages of incomplete inventories, by device.
#[derive(Debug, Default)]
pub struct Inventories {
    arriving: BTreeMap<DeviceId, Arriving>,
    /// Session and number of each device's last complete inventory. A broker may repeat it, when the device has other runs.
    reconciled: BTreeMap<DeviceId, (u64, u32)>,
    /// The runs in each device's last inventory that the store does not know.
    unknown: BTreeMap<DeviceId, BTreeSet<RunId>>,
}

#[derive(Debug)]
struct Arriving {
    session: u64,
    number: u32,
    pages: BTreeMap<u16, Vec<HeldRun>>,
}

impl Inventories {
    /// Creates the inventories of a coordinator that has had the newest ones of these sessions, the current session of each device last.
    pub fn of_store(heard: &[HeardSession]) -> Self {
        let newest = heard
            .iter()
            .map(|heard| (heard.device.clone(), (heard.session, heard.newest)));
        Self {
            reconciled: newest.collect(),
            ..Self::default()
        }
    }

    /// Adds a page. Returns every run that the device holds once all pages have arrived.
    fn take(&mut self, device: &DeviceId, page: Inventory) -> Option<BTreeMap<RunId, RunHolding>> {
        if page.pages == 0 || page.pages > PAGES || page.page >= page.pages {
            return None;
        }
        let arriving = self
            .arriving
            .entry(device.clone())
            .or_insert_with(|| Arriving::of(&page));
        if (arriving.session, arriving.number) != (page.session, page.number) {
            *arriving = Arriving::of(&page);
        }
        arriving.pages.insert(page.page, page.runs);
        if arriving.pages.len() < usize::from(page.pages) {
            return None;
        }
        let complete = self.arriving.remove(device)?;
        let runs = complete.pages.into_values().flatten();
        Some(runs.map(|held| (held.run, held.holding)).collect())
    }

    /// Adds a page of a device's inventory, and reconciles the device's runs when the inventory is complete. A run that is not listed is
    /// marked as lost if the session `is_settled`. Before that, the dispatcher queries it once more.
    ///
    /// # Errors
    /// Returns an error when the store fails. Nothing is stored then, and the device repeats the inventory.
    pub fn reconcile(
        &mut self,
        store: &Store,
        device: &DeviceId,
        page: Inventory,
        is_settled: bool,
    ) -> store::Result<()> {
        let (newest_command, key) = (page.newest_command, (page.session, page.number));
        if self.reconciled.get(device) == Some(&key) {
            return Ok(());
        }
        let Some(held) = self.take(device, page) else {
            return Ok(());
        };
        let known = self.unknown.get(device);
        let (unknown, is_older) = store.all_or_nothing(|store| {
            let is_older = store.numbers().raise_commands_above(device, newest_command)?;
            let mut not_sent = BTreeSet::new();
            for (run, holding) in &held {
                if store.runs().device_of_sent(*run)?.as_ref() != Some(device) {
                    not_sent.insert(*run);
                    continue;
                }
                if *holding != RunHolding::Refused && store.runs().reopen(device, *run)? {
                    tracing::warn!(%run, %device, "the device has this run after all: it continues");
                }
                store
                    .runs()
                    .clear_sent_marks(device, *run, *holding == RunHolding::Released)?;
            }
            if is_settled {
                let open = store.runs().known_open(device)?;
                for run in open.into_iter().filter(|run| !held.contains_key(run)) {
                    tracing::warn!(%run, %device, "the device no longer has this run");
                    store
                        .runs()
                        .mark_lost(run, &format!("{}: its state was lost", end_reason::RUN_LOST))?;
                }
            }
            let removed =
                store
                    .removed_runs()
                    .reconcile(device, |run| held.contains_key(&run), is_settled)?;
            let unknown: BTreeSet<RunId> = not_sent.difference(&removed).copied().collect();
            if known != Some(&unknown) {
                store.unknown_runs().replace(device, &unknown)?;
            }
            Ok((unknown, is_older))
        })?;
        self.reconciled.insert(device.clone(), key);
        if is_older {
            tracing::warn!(
                %device,
                "the device has newer commands than this store has sent. hint: if the workspace was restored from an older copy, repeat what \
                 was changed since, such as removals of devices"
            );
        }
        if unknown.len() > known.map_or(0, BTreeSet::len) {
            tracing::warn!(
                %device,
                "the device has {} runs that this database does not know, and keeps them. hint: was the database restored from an older copy? `regatta status` names the runs",
                unknown.len()
            );
        }
        self.unknown.insert(device.clone(), unknown);
        Ok(())
    }
}

impl Arriving {
    fn of(page: &Inventory) -> Self {
        Self {
            session: page.session,
            number: page.number,
            pages: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u32, page: u16, pages: u16, runs: &[RunId]) -> Inventory {
        let held = |run: &RunId| HeldRun {
            run: *run,
            holding: RunHolding::Kept,
        };
        Inventory {
            session: 1,
            number,
            page,
            pages,
            newest_command: 0,
            runs: runs.iter().map(held).collect(),
        }
    }

    #[test]
    fn pages_make_an_inventory_when_all_of_one_number_are_there() {
        let device: DeviceId = "ab".repeat(16).parse().unwrap();
        let runs = [RunId::now(), RunId::now()];
        let mut inventories = Inventories::default();
        let mut take = |page| inventories.take(&device, page);
        assert_eq!(take(page(1, 0, 1, &[])), Some(BTreeMap::new()));
        assert_eq!(take(page(2, 1, 2, &runs[1..])), None);
        assert_eq!(take(page(2, 1, 2, &runs[1..])), None, "the same page twice");
        // The other page was lost. The next inventory does not mix with this one.
        assert_eq!(take(page(3, 0, 2, &runs[..1])), None);
        let complete = take(page(3, 1, 2, &runs[1..])).unwrap();
        assert_eq!(complete.into_keys().collect::<Vec<_>>(), runs);
        for (number, of) in [(0, 0), (3, 3), (0, PAGES + 1)] {
            assert_eq!(take(page(4, number, of, &[])), None, "page {number} of {of}");
        }
    }
}
