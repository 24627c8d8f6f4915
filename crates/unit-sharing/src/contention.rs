//! The contention between units that compute at the same time and slow each other down. Progress is stored as remaining
//! work; a unit's speed changes whenever another one begins or ends. Knows no batches and no copies.

use crate::board_model::BoardModel;

/// The remaining work of a board's units at one time.
#[derive(Debug, Clone)]
pub struct Contention {
    /// The remaining seconds of work per unit, as if it computed alone; `None` for an idle unit.
    left: Vec<Option<f64>>,
    /// A buffer for each unit's slowdown, so that advancing the time allocates nothing.
    slowdowns: Vec<f64>,
    now: f64,
}

impl Contention {
    /// Creates the state in which all units are idle at time 0.
    #[must_use]
    pub fn new(units: usize) -> Self {
        Self {
            left: vec![None; units],
            slowdowns: Vec::with_capacity(units),
            now: 0.0,
        }
    }

    /// Returns whether the unit computes.
    #[must_use]
    pub fn is_busy(&self, unit: usize) -> bool {
        self.left[unit].is_some()
    }

    /// Starts `work` seconds of work on a unit, counted as if it computed alone.
    pub fn begin(&mut self, board: &BoardModel, unit: usize, work: f64, now: f64) {
        self.advance(board, now);
        self.left[unit] = Some(work);
    }

    /// Makes a unit idle.
    pub fn end(&mut self, board: &BoardModel, unit: usize, now: f64) {
        self.advance(board, now);
        self.left[unit] = None;
    }

    /// Returns the time at which the unit will end if no other unit begins or ends before. `None` for an idle unit.
    #[must_use]
    pub fn ready_at(&self, board: &BoardModel, unit: usize) -> Option<f64> {
        self.left[unit].map(|left| self.now + left * self.slowdown(board, unit))
    }

    /// Returns the unit that ends next, with its time. `None` when all units are idle.
    #[must_use]
    pub fn next_ready(&self, board: &BoardModel) -> Option<(usize, f64)> {
        let ready = (0..self.left.len()).filter_map(|unit| Some((unit, self.ready_at(board, unit)?)));
        ready.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    fn advance(&mut self, board: &BoardModel, now: f64) {
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

    fn slowdown(&self, board: &BoardModel, unit: usize) -> f64 {
        board.slowdown(unit, (0..self.left.len()).filter(|&other| self.is_busy(other)))
    }
}
