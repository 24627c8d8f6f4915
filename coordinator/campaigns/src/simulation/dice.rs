//! The random numbers of simulated campaigns, the same in every run of a test.

use regatta_random::SplitMix64;

/// A generator of faults.
pub(super) struct Dice(SplitMix64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Draws a number below a bound.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Draws the steps of faults within a time.
    pub(super) fn steps(&mut self, count: u64, steps: u64) -> Vec<u64> {
        (0..count).map(|_| self.below(steps)).collect()
    }
}
