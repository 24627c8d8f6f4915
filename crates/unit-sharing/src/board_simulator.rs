//! A simulator of a board model, to which batches are submitted. Each unit's copy engine copies one batch after the other;
//! then the unit computes them in the same order. A batch begins exactly when the one before ends, independent of when the
//! caller looks. The agent's `sim` engine uses it with the real clock, and [`virtual_time`] without a clock.
//!
//! [`virtual_time`]: crate::virtual_time

use std::collections::VecDeque;

use regatta_random::SplitMix64;

use crate::{MAX_IN_FLIGHT, board_model::BoardModel, contention::Contention};

/// The id of a submitted batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchId(u64);

/// An event on a simulated board.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoardEvent {
    /// The time of the event in seconds since the simulator was created.
    pub at: f64,
    /// The unit whose oldest batch is computed. `None` when a batch was only copied.
    pub done: Option<usize>,
}

/// A simulator of a board with its pending batches. Times are seconds since it was created.
#[derive(Debug)]
pub struct BoardSimulator {
    board: BoardModel,
    contention: Contention,
    units: Vec<SimulatedUnit>,
    submitted: u64,
}

#[derive(Debug)]
struct SimulatedUnit {
    random: SplitMix64,
    /// The batches in the copy engine, oldest first, with the time at which each is copied.
    copying: VecDeque<(f64, PendingBatch)>,
    /// The copied batches, oldest first. The unit computes the first one.
    waiting: VecDeque<PendingBatch>,
    work: Work,
}

#[derive(Debug, Clone, Copy)]
struct PendingBatch {
    id: BatchId,
    size: usize,
}

/// A unit's total seconds of work, by its table and with jitter.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    nominal: f64,
    with_jitter: f64,
}

impl BoardSimulator {
    /// Creates an idle board with jitter from `seed`.
    #[must_use]
    pub fn new(board: BoardModel, seed: u64) -> Self {
        let units = (0..board.units.len()).map(|unit| SimulatedUnit {
            random: SplitMix64::sequence(seed, unit as u64),
            copying: VecDeque::with_capacity(MAX_IN_FLIGHT),
            waiting: VecDeque::with_capacity(MAX_IN_FLIGHT),
            work: Work::default(),
        });
        Self {
            contention: Contention::new(board.units.len()),
            units: units.collect(),
            board,
            submitted: 0,
        }
    }

    /// Returns the board model.
    #[must_use]
    pub const fn board(&self) -> &BoardModel {
        &self.board
    }

    /// Returns the factor by which jitter has stretched each unit's work so far; 1 for a unit without work.
    pub fn stretched(&self) -> impl Iterator<Item = f64> {
        let work = self.units.iter().map(|unit| unit.work);
        work.map(|work| {
            if work.nominal > 0.0 {
                work.with_jitter / work.nominal
            } else {
                1.0
            }
        })
    }

    /// Submits a batch of `size` samples to `unit`. `now` must not be before the time of any earlier call.
    pub fn submit(&mut self, unit: usize, size: usize, now: f64) -> BatchId {
        let id = BatchId(self.submitted);
        self.submitted += 1;
        let copy = self.board.units[unit].copy * size as f64;
        let copying = &mut self.units[unit].copying;
        let begin = copying.back().map_or(now, |&(until, _)| until.max(now));
        copying.push_back((begin + copy, PendingBatch { id, size }));
        id
    }

    /// Returns the time at which to call again, or `None` when the batch is computed. The batch may end earlier than that
    /// when another unit becomes idle; every call updates all units.
    pub fn wait_until(&mut self, unit: usize, id: BatchId, now: f64) -> Option<f64> {
        self.advance(now);
        let SimulatedUnit { copying, waiting, .. } = &self.units[unit];
        let mut pending = copying.iter().map(|(_, batch)| batch).chain(waiting);
        let is_pending = pending.any(|batch| batch.id == id);
        let computed = self.contention.ready_at(&self.board, unit);
        let copied = copying.front().map(|&(until, _)| until);
        is_pending.then(|| computed.or(copied)).flatten()
    }

    /// Advances to the next event and returns it. Returns `None` when the board is idle.
    pub fn step(&mut self) -> Option<BoardEvent> {
        let copied = self.next_copied();
        let ready = self.contention.next_ready(&self.board);
        match (copied, ready) {
            (Some((unit, at)), ready) if ready.is_none_or(|(_, ready)| at <= ready) => {
                let state = &mut self.units[unit];
                state
                    .waiting
                    .extend(state.copying.pop_front().map(|(_, batch)| batch));
                self.begin(unit, at);
                Some(BoardEvent { at, done: None })
            }
            (_, Some((unit, at))) => {
                self.contention.end(&self.board, unit, at);
                self.units[unit].waiting.pop_front();
                self.begin(unit, at);
                Some(BoardEvent { at, done: Some(unit) })
            }
            _ => None,
        }
    }

    /// Advances through all events until `now`.
    fn advance(&mut self, now: f64) {
        let next = |chip: &Self| {
            let copied = chip.next_copied().map(|(_, at)| at);
            let ready = chip.contention.next_ready(&chip.board).map(|(_, at)| at);
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

    /// Starts the oldest waiting batch of an idle unit.
    fn begin(&mut self, unit: usize, now: f64) {
        if self.contention.is_busy(unit) {
            return;
        }
        let state = &mut self.units[unit];
        let Some(batch) = state.waiting.front() else {
            return;
        };
        let nominal = self.board.units[unit].times.seconds(batch.size);
        let with_jitter = nominal * state.random.factor(self.board.jitter);
        state.work.nominal += nominal;
        state.work.with_jitter += with_jitter;
        self.contention.begin(&self.board, unit, with_jitter, now);
    }
}
