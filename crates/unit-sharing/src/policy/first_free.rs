//! The policy of NVIDIA's harness (LWIS), for comparison and as the fallback: every free stream takes a batch of its unit's
//! configured size. It has no cost model, so that the slowest unit may get the last batch.

use super::Policy;

/// The policy with which the first free stream takes a full batch.
#[derive(Debug, Clone)]
pub struct FirstFree {
    batch: Vec<usize>,
}

impl FirstFree {
    /// Creates the policy from one batch size per unit.
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
