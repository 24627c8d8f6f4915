//! The inventory: the list of the runs on the device, in numbered pages. The hello alone is not enough: it lists only as
//! many runs as fit, and a message can be lost.

use std::{
    collections::VecDeque,
    io,
    time::{Duration, Instant},
};

use regatta_wire::message::{HeldRun, Inventory};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Shortest time between two inventories that replayed commands can cause.
const PAUSE: Duration = Duration::from_secs(10);

/// The pages of the newest inventory that are not published yet.
#[derive(Debug)]
pub(super) struct InventoryPages {
    pages: VecDeque<Inventory>,
    /// Random number of this process.
    session: u64,
    /// Number of inventories so far, and the time of the last.
    count: u32,
    last: Option<Instant>,
}

impl InventoryPages {
    /// Returns a new session without an inventory.
    ///
    /// # Errors
    /// When the system provides no random numbers.
    pub(super) fn new() -> io::Result<Self> {
        let mut session = [0; 8];
        SystemRandom::new()
            .fill(&mut session)
            .map_err(|_| io::Error::other("the system has no random bytes"))?;
        Ok(Self {
            pages: VecDeque::new(),
            session: u64::from_le_bytes(session),
            count: 0,
            last: None,
        })
    }

    /// Replaces the pages with those of a new inventory.
    pub(super) fn queue(&mut self, held: &[HeldRun], newest_command: u64, now: Instant) {
        self.count = self.count.wrapping_add(1);
        self.last = Some(now);
        self.pages = pages(held, self.session, self.count, newest_command);
    }

    /// Returns whether the last inventory is old enough for another one that a replayed command causes.
    pub(super) fn is_older_than_pause(&self, now: Instant) -> bool {
        self.last
            .is_none_or(|last| now.saturating_duration_since(last) >= PAUSE)
    }

    /// Returns whether a page is due.
    pub(super) fn has_page(&self) -> bool {
        !self.pages.is_empty()
    }

    /// Removes and returns the next page.
    pub(super) fn next_page(&mut self) -> Option<Inventory> {
        self.pages.pop_front()
    }
}

/// Splits an inventory into pages. Returns one empty page if there are no runs.
fn pages(held: &[HeldRun], session: u64, number: u32, newest_command: u64) -> VecDeque<Inventory> {
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
    use regatta_types::RunId;
    use regatta_wire::message::{Message as _, RunHolding};

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
        let listed: Vec<HeldRun> = pages.iter().flat_map(|page| page.runs.clone()).collect();
        assert_eq!(listed, held);
        assert!(pages.iter().all(|page| page.to_frame().is_ok()));
    }
}
