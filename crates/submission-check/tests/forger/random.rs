//! Random choices, equal for equal seeds.

use regatta_loadgen::rng::Mt19937;

/// A source of choices.
pub(crate) struct Random(Mt19937);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mt19937::new(seed))
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.next_u32() as usize % bound
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A number from `low` to `high`.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * f64::from(self.0.next_u32()) / f64::from(u32::MAX)
    }

    /// Whether a coin shows heads.
    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}
