//! The inventory: the list of the runs on the device. It is published in pages after each hello and repeated while no
//! run is active. The hello alone is not enough: it lists only as many runs as fit, and a message can be lost.

use std::time::{Duration, Instant};

use regatta_types::RunId;
use regatta_wire::{
    message::{HeldRun, Inventory, Message as _, RunHolding},
    topic::Leaf,
};

use super::{
    link::{Link, Publication},
    run::Run,
    service::Service,
};

/// Interval between repetitions of hello and inventory. A repetition replaces what the coordinator or broker has lost.
const REPEAT: Duration = Duration::from_secs(300);
/// The same interval after a new connection. A coordinator drops runs that a new session lacks only after repeated
/// inventories.
pub(super) const REPEAT_FIRST: Duration = Duration::from_secs(20);
/// Shortest time between two inventories that replayed commands can cause.
const PAUSE: Duration = Duration::from_secs(10);

impl<L: Link> Service<L> {
    /// Publishes hello and inventory again when due. Not while a run is active, because the messages would fall into
    /// its measurement window.
    pub(super) fn repeat_hello(&mut self, now: Instant) {
        let due = self.repeat_at.is_some_and(|at| at <= now);
        if due && self.connected && self.active.is_none() {
            self.repeat_at = Some(now + REPEAT);
            self.retry_unreadable();
            self.due.hello = true;
        }
    }

    /// Publishes the inventory, because the coordinator appears to have an outdated view.
    pub(super) fn tell_inventory(&mut self) {
        let told_lately = self.last_inventory.is_some_and(|told| told.elapsed() < PAUSE);
        if self.active.is_none() && !told_lately {
            self.prepare_inventory();
        }
    }

    /// Queues the pages of a new inventory.
    pub(super) fn prepare_inventory(&mut self) {
        self.inventories = self.inventories.wrapping_add(1);
        self.last_inventory = Some(Instant::now());
        let holding = |run: &RunId| match self.runs.get(run) {
            Some(run) if run.job.released => RunHolding::Released,
            Some(_) => RunHolding::Kept,
            None if self.unreadable.contains_key(run) => RunHolding::Kept,
            None => RunHolding::Refused,
        };
        let held: Vec<HeldRun> = self
            .known_runs()
            .into_iter()
            .map(|run| HeldRun {
                run,
                holding: holding(&run),
            })
            .collect();
        self.due.inventory = pages(&held, self.session, self.inventories, self.trust.newest());
    }

    /// Returns the next queued page.
    pub(super) fn inventory_page(&mut self) -> Option<Publication> {
        let page = self.due.inventory.pop_front()?;
        let payload = page
            .to_frame()
            .inspect_err(|e| tracing::error!("the inventory cannot be told: {e}"))
            .ok()?;
        Some(Publication {
            topic: self.topic(Leaf::Telemetry),
            payload,
            retain: false,
            at_least_once: true,
        })
    }

    /// Retries runs that could not be read at the start.
    pub(super) fn retry_unreadable(&mut self) {
        for (id, dir) in std::mem::take(&mut self.unreadable) {
            match super::recovery::recover_run(id, dir, &self.storage) {
                super::recovery::Recovered::Run(run) => self.take_up(*run),
                super::recovery::Recovered::Unreadable(dir) => drop(self.unreadable.insert(id, dir)),
                super::recovery::Recovered::LeftAlone => {}
            }
        }
    }

    fn take_up(&mut self, run: Run) {
        let id = run.id();
        self.next_arrival = self.next_arrival.max(run.job.arrival.saturating_add(1));
        if run.wants_sealing() {
            self.to_seal.push_back(id);
        }
        self.due.states.insert(id);
        self.runs.insert(id, run);
    }
}

/// Splits an inventory into pages. Returns one empty page if there are no runs.
fn pages(
    held: &[HeldRun],
    session: u64,
    number: u32,
    newest_command: u64,
) -> std::collections::VecDeque<Inventory> {
    let mut chunks: Vec<&[HeldRun]> = held.chunks(Inventory::RUNS_PER_PAGE).collect();
    if chunks.is_empty() {
        chunks.push(&[]);
    }
    let count = u16::try_from(chunks.len()).unwrap_or(u16::MAX);
    (0..count)
        .zip(chunks)
        .map(|(page, runs)| Inventory {
            session,
            number,
            page,
            pages: count,
            newest_command,
            runs: runs.to_vec(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_on_one_page_and_there_is_always_a_page() {
        let none = pages(&[], 7, 1, 9);
        assert_eq!(none.len(), 1);
        assert!(none[0].runs.is_empty() && none[0].pages == 1);
        let held: Vec<HeldRun> = (0..5_000)
            .map(|_| HeldRun {
                run: RunId::now(),
                holding: RunHolding::Kept,
            })
            .collect();
        let pages = pages(&held, 7, 2, 9);
        let numbers: Vec<(u16, u16)> = pages.iter().map(|page| (page.page, page.pages)).collect();
        assert_eq!(numbers, [(0, 3), (1, 3), (2, 3)]);
        let told: Vec<HeldRun> = pages.iter().flat_map(|page| page.runs.clone()).collect();
        assert_eq!(told, held);
        assert!(pages.iter().all(|page| page.to_frame().is_ok()));
    }
}
