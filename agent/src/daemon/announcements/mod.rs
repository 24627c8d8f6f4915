//! Everything that the daemon publishes except logs: which messages are due, and in which order. This component does not know the
//! contents of states and hellos; `publications` encodes them.

mod inventory;
mod onnxruntime;
pub(crate) mod publications;
mod software;

use std::{
    collections::BTreeSet,
    io,
    time::{Duration, Instant},
};

use regatta_types::RunId;
use regatta_wire::message::{HeldRun, Inventory};

use self::inventory::InventoryPages;

/// Interval between repetitions of hello and inventory. A repetition replaces what the coordinator or broker has lost.
const REPETITION: Duration = Duration::from_secs(300);
/// The same interval after a new connection. A coordinator drops runs that are missing from a new session only after repeated
/// inventories.
const FIRST_REPETITION: Duration = Duration::from_secs(20);
/// Number of `Examine` commands that may wait for the end of a run.
const MAX_EXAMINATIONS: usize = 16;

/// The publications that are due.
#[derive(Debug)]
pub(crate) struct Announcements {
    hello: bool,
    heartbeat: bool,
    /// Number of heartbeats so far.
    heartbeats: u64,
    inventory: InventoryPages,
    /// Runs whose state is due.
    states: BTreeSet<RunId>,
    /// Removed runs whose retained state must be cleared.
    cleared: BTreeSet<RunId>,
    /// Ids of pending `Examine` commands.
    examinations: BTreeSet<RunId>,
    /// Time to repeat the hello and the inventory.
    repeat_at: Option<Instant>,
}

/// One publication that is due.
#[derive(Debug, PartialEq)]
pub(crate) enum Announcement {
    /// The retained hello. The pages of an inventory follow, see [`Announcements::queue_inventory`].
    Hello,
    /// The heartbeat with this sequence number.
    Heartbeat(u64),
    InventoryPage(Inventory),
    /// Clears the retained state of a removed run.
    ClearedState(RunId),
    /// The retained state of a run.
    State(RunId),
    /// The answer to the `Examine` command with this id.
    Examination(RunId),
}

impl Announcements {
    /// Returns announcements of which none is due.
    ///
    /// # Errors
    /// When the system provides no random numbers for the session's id.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            hello: false,
            heartbeat: false,
            heartbeats: 0,
            inventory: InventoryPages::new()?,
            states: BTreeSet::new(),
            cleared: BTreeSet::new(),
            examinations: BTreeSet::new(),
            repeat_at: None,
        })
    }

    /// Makes a hello due.
    pub(crate) const fn queue_hello(&mut self) {
        self.hello = true;
    }

    /// Makes a heartbeat due.
    pub(crate) const fn queue_heartbeat(&mut self) {
        self.heartbeat = true;
    }

    /// Makes a run's state due.
    pub(crate) fn queue_state(&mut self, run: RunId) {
        self.states.insert(run);
    }

    /// Makes the clearing of a removed run's state due.
    pub(crate) fn queue_cleared_state(&mut self, run: RunId) {
        self.states.remove(&run);
        self.cleared.insert(run);
    }

    /// Makes the answer to an `Examine` command due. Ignores the command if too many others wait.
    pub(crate) fn queue_examination(&mut self, command: RunId) {
        if self.examinations.len() < MAX_EXAMINATIONS {
            self.examinations.insert(command);
        } else {
            tracing::warn!("an Examine command was dropped: {MAX_EXAMINATIONS} others wait for an answer");
        }
    }

    /// Replaces the pages of the inventory that are due.
    pub(crate) fn queue_inventory(&mut self, held: &[HeldRun], newest_command: u64, now: Instant) {
        self.inventory.queue(held, newest_command, now);
    }

    /// Returns whether an inventory may answer a command that shows an outdated view. Replayed commands must not cause
    /// a flood of inventories.
    pub(crate) fn may_answer_with_inventory(&self, now: Instant) -> bool {
        self.inventory.is_older_than_pause(now)
    }

    /// Handles a new connection: the first repetition is sent soon.
    pub(crate) fn handle_connected(&mut self, now: Instant) {
        self.repeat_at = Some(now + FIRST_REPETITION);
    }

    /// Handles a lost connection: a heartbeat is not sent late.
    pub(crate) const fn handle_disconnected(&mut self) {
        self.heartbeat = false;
    }

    /// Makes the hello and these states due, because earlier publications may be lost.
    pub(crate) fn repeat_all(&mut self, runs: impl Iterator<Item = RunId>) {
        self.hello = true;
        self.states.extend(runs);
    }

    /// Returns the time of the next repetition of hello and inventory.
    pub(crate) const fn repetition(&self) -> Option<Instant> {
        self.repeat_at
    }

    /// Makes the hello due again if it is time for a repetition. Returns whether it was.
    pub(crate) fn repeat_hello(&mut self, now: Instant) -> bool {
        let is_due = self.repeat_at.is_some_and(|at| at <= now);
        if is_due {
            self.repeat_at = Some(now + REPETITION);
            self.hello = true;
        }
        is_due
    }

    /// Returns whether states are due.
    pub(crate) fn has_states(&self) -> bool {
        !self.states.is_empty()
    }

    /// Returns whether [`Self::next`] would return an announcement.
    pub(crate) fn has_next(&self, is_run_active: bool) -> bool {
        self.hello
            || self.heartbeat
            || self.inventory.has_page()
            || !self.cleared.is_empty()
            || !self.states.is_empty()
            || (!is_run_active && !self.examinations.is_empty())
    }

    /// Removes and returns the most urgent announcement. Examinations wait until no run is active: an answer reads
    /// about a hundred files, and would be sent while LoadGen runs.
    pub(crate) fn next(&mut self, is_run_active: bool) -> Option<Announcement> {
        if std::mem::take(&mut self.hello) {
            return Some(Announcement::Hello);
        }
        if std::mem::take(&mut self.heartbeat) {
            self.heartbeats = self.heartbeats.saturating_add(1);
            return Some(Announcement::Heartbeat(self.heartbeats));
        }
        // The inventory precedes states, so that a run accepted in between is not missing from older pages.
        if let Some(page) = self.inventory.next_page() {
            return Some(Announcement::InventoryPage(page));
        }
        if let Some(run) = self.cleared.pop_first() {
            return Some(Announcement::ClearedState(run));
        }
        if let Some(run) = self.states.pop_first() {
            return Some(Announcement::State(run));
        }
        if is_run_active {
            return None;
        }
        self.examinations.pop_first().map(Announcement::Examination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgent_announcements_are_first_and_examinations_wait_for_the_active_run() {
        let mut announcements = Announcements::new().unwrap();
        let [changed, removed, examine] = [(); 3].map(|()| RunId::now());
        announcements.queue_examination(examine);
        announcements.queue_state(changed);
        announcements.queue_state(removed);
        announcements.queue_cleared_state(removed);
        announcements.queue_heartbeat();
        announcements.queue_hello();
        let order: Vec<Announcement> = std::iter::from_fn(|| announcements.next(true)).collect();
        assert_eq!(
            order,
            [
                Announcement::Hello,
                Announcement::Heartbeat(1),
                Announcement::ClearedState(removed),
                Announcement::State(changed),
            ]
        );
        assert!(!announcements.has_next(true) && announcements.has_next(false));
        assert_eq!(
            announcements.next(false),
            Some(Announcement::Examination(examine))
        );
    }

    #[test]
    fn repetitions_are_frequent_only_after_a_new_connection() {
        let (mut announcements, connected) = (Announcements::new().unwrap(), Instant::now());
        assert!(!announcements.repeat_hello(connected));
        announcements.handle_connected(connected);
        assert!(!announcements.repeat_hello(connected + FIRST_REPETITION / 2));
        let first = connected + FIRST_REPETITION;
        assert!(announcements.repeat_hello(first) && !announcements.repeat_hello(first));
        assert_eq!(announcements.repetition(), Some(first + REPETITION));
    }
}
