//! A small random generator, so that every run of a test is the same.

/// splitmix64.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// Draws a number below a bound.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// Draws the steps of faults within a time.
    pub(super) fn steps(&mut self, count: u64, steps: u64) -> Vec<u64> {
        (0..count).map(|_| self.below(steps)).collect()
    }
}
