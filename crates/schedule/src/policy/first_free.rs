//! The policy of NVIDIA's harness (LWIS), for comparison and as the fallback: a batch goes to whoever has a free stream,
//! at the size set for that unit. No cost model; the last batch may be left to the slowest unit.

use super::Policy;

/// Whoever is free takes a full batch.
#[derive(Debug, Clone)]
pub struct FirstFree {
    batch: Vec<usize>,
}

impl FirstFree {
    /// With one batch size per unit.
    #[must_use]
    pub const fn new(batch: Vec<usize>) -> Self {
        Self { batch }
    }
}

impl Policy for FirstFree {
    fn take(&mut self, unit: usize, _now: f64, remaining: usize) -> usize {
        self.batch[unit].min(remaining)
    }

    fn done(&mut self, _unit: usize, _now: f64) {}
}
