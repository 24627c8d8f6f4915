//! Who computes what until when, on units that slow each other down: progress is kept as work left, and the speed of
//! each changes whenever another begins or ends. Used with the real clock and in virtual time alike.

use crate::board::Board;

/// The state of a board's compute units at a moment.
#[derive(Debug, Clone)]
pub struct Sharing {
    /// Seconds of work left per unit, as if it were alone; `None` when idle.
    left: Vec<Option<f64>>,
    /// Room for how much each unit is slowed down, so that looking at the clock allocates nothing.
    slowdowns: Vec<f64>,
    now: f64,
}

impl Sharing {
    /// All `units` idle at time 0.
    #[must_use]
    pub fn new(units: usize) -> Self {
        Self {
            left: vec![None; units],
            slowdowns: Vec::with_capacity(units),
            now: 0.0,
        }
    }

    /// Whether the unit computes.
    #[must_use]
    pub fn is_busy(&self, unit: usize) -> bool {
        self.left[unit].is_some()
    }

    /// The unit begins `work` seconds of work, counted as if it were alone.
    pub fn begin(&mut self, board: &Board, unit: usize, work: f64, now: f64) {
        self.advance(board, now);
        self.left[unit] = Some(work);
    }

    /// The unit is idle from now on.
    pub fn end(&mut self, board: &Board, unit: usize, now: f64) {
        self.advance(board, now);
        self.left[unit] = None;
    }

    /// When the unit will be ready if nobody begins or ends before, or `None` when it is idle.
    #[must_use]
    pub fn ready_at(&self, board: &Board, unit: usize) -> Option<f64> {
        self.left[unit].map(|left| self.now + left * self.slowdown(board, unit))
    }

    /// The next unit to be ready and when, or `None` when all are idle.
    #[must_use]
    pub fn next_ready(&self, board: &Board) -> Option<(usize, f64)> {
        let ready = (0..self.left.len()).filter_map(|unit| Some((unit, self.ready_at(board, unit)?)));
        ready.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    fn advance(&mut self, board: &Board, now: f64) {
        let passed = (now - self.now).max(0.0);
        let mut slowdowns = std::mem::take(&mut self.slowdowns);
        slowdowns.clear();
        slowdowns.extend((0..self.left.len()).map(|unit| self.slowdown(board, unit)));
        for (left, slowdown) in self.left.iter_mut().zip(&slowdowns) {
            if let Some(left) = left {
                *left = (*left - passed / slowdown).max(0.0);
            }
        }
        self.slowdowns = slowdowns;
        self.now = self.now.max(now);
    }

    fn slowdown(&self, board: &Board, unit: usize) -> f64 {
        board.slowdown(unit, (0..self.left.len()).filter(|&other| self.is_busy(other)))
    }
}
