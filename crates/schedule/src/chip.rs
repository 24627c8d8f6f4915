//! A modelled board as something to hand batches to. A batch is copied by its unit's copy engine, one after the other, and
//! waits for the unit, which computes in the order in which batches came; the next begins at the very moment at which the one
//! before ends, however late somebody looks. The one model behind the agent's `sim` with the real clock and [`virtual_time`]
//! with none.
//!
//! [`virtual_time`]: crate::virtual_time

use std::collections::VecDeque;

use crate::{MOST_IN_FLIGHT, board::Board, random::SplitMix, sharing::Sharing};

/// A batch that was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

/// What happened on a board.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// When, in seconds since the board was made.
    pub at: f64,
    /// The unit whose oldest batch is done; `None` where a batch was only copied.
    pub done: Option<usize>,
}

/// The board's units with what they have to do. Times are seconds since it was made.
#[derive(Debug)]
pub struct Chip {
    board: Board,
    sharing: Sharing,
    units: Vec<UnitState>,
    tickets: u64,
}

#[derive(Debug)]
struct UnitState {
    random: SplitMix,
    /// Batches in the copy engine, oldest first, and when each is copied.
    copying: VecDeque<(f64, Handed)>,
    /// Batches that are copied, the one that is computed first.
    waiting: VecDeque<Handed>,
    work: Work,
}

#[derive(Debug, Clone, Copy)]
struct Handed {
    ticket: Ticket,
    size: usize,
}

/// Seconds of work of a unit, by its table and as they came.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    by_table: f64,
    came: f64,
}

impl Chip {
    /// An idle board, with jitter from `seed`.
    #[must_use]
    pub fn new(board: Board, seed: u64) -> Self {
        let units = (0..board.units.len()).map(|unit| UnitState {
            random: SplitMix::new(seed, unit as u64),
            copying: VecDeque::with_capacity(MOST_IN_FLIGHT),
            waiting: VecDeque::with_capacity(MOST_IN_FLIGHT),
            work: Work::default(),
        });
        Self {
            sharing: Sharing::new(board.units.len()),
            units: units.collect(),
            board,
            tickets: 0,
        }
    }

    /// The board.
    #[must_use]
    pub const fn board(&self) -> &Board {
        &self.board
    }

    /// How many times longer than its table says each unit's work took by jitter alone so far; 1 where it had none.
    pub fn stretched(&self) -> impl Iterator<Item = f64> {
        let work = self.units.iter().map(|unit| unit.work);
        work.map(|work| {
            if work.by_table > 0.0 {
                work.came / work.by_table
            } else {
                1.0
            }
        })
    }

    /// Hands `unit` a batch of `size` samples, no earlier than anybody handed over or asked before.
    pub fn submit(&mut self, unit: usize, size: usize, now: f64) -> Ticket {
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        let copy = self.board.units[unit].copy * size as f64;
        let copying = &mut self.units[unit].copying;
        let begin = copying.back().map_or(now, |&(until, _)| until.max(now));
        copying.push_back((begin + copy, Handed { ticket, size }));
        ticket
    }

    /// Until when to wait before asking again whether the batch is done, or `None` when it is. The unit may be done
    /// sooner when another one ends, which this function finds out for all.
    pub fn wait_until(&mut self, unit: usize, ticket: Ticket, now: f64) -> Option<f64> {
        self.advance(now);
        let UnitState { copying, waiting, .. } = &self.units[unit];
        let mut at_hand = copying.iter().map(|(_, batch)| batch).chain(waiting);
        let waits = at_hand.any(|batch| batch.ticket == ticket);
        let computed = self.sharing.ready_at(&self.board, unit);
        let copied = copying.front().map(|&(until, _)| until);
        waits.then(|| computed.or(copied)).flatten()
    }

    /// What happens next, which is then done; `None` when the board is idle.
    pub fn step(&mut self) -> Option<Event> {
        let copied = self.next_copied();
        let ready = self.sharing.next_ready(&self.board);
        match (copied, ready) {
            (Some((unit, at)), ready) if ready.is_none_or(|(_, ready)| at <= ready) => {
                let state = &mut self.units[unit];
                state
                    .waiting
                    .extend(state.copying.pop_front().map(|(_, batch)| batch));
                self.begin(unit, at);
                Some(Event { at, done: None })
            }
            (_, Some((unit, at))) => {
                self.sharing.end(&self.board, unit, at);
                self.units[unit].waiting.pop_front();
                self.begin(unit, at);
                Some(Event { at, done: Some(unit) })
            }
            _ => None,
        }
    }

    /// Does what happens by `now`, each at its own time.
    fn advance(&mut self, now: f64) {
        let next = |chip: &Self| {
            let copied = chip.next_copied().map(|(_, at)| at);
            let ready = chip.sharing.next_ready(&chip.board).map(|(_, at)| at);
            copied.into_iter().chain(ready).fold(f64::INFINITY, f64::min)
        };
        while next(self) <= now {
            self.step();
        }
    }

    fn next_copied(&self) -> Option<(usize, f64)> {
        let copied = self.units.iter().enumerate();
        let copied = copied.filter_map(|(unit, state)| Some((unit, state.copying.front()?.0)));
        copied.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Begins the oldest waiting batch of an idle unit.
    fn begin(&mut self, unit: usize, now: f64) {
        if self.sharing.is_busy(unit) {
            return;
        }
        let state = &mut self.units[unit];
        let Some(batch) = state.waiting.front() else {
            return;
        };
        let by_table = self.board.units[unit].times.seconds(batch.size);
        let came = by_table * state.random.factor(self.board.jitter);
        state.work.by_table += by_table;
        state.work.came += came;
        self.sharing.begin(&self.board, unit, came, now);
    }
}
