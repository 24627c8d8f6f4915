//! SplitMix64, a small random number generator for repeatable simulations. LoadGen does not use it: it has the official
//! generators.

/// A SplitMix64 generator.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Creates the generator for sequence `number` of `seed`. Draws from one sequence do not affect another.
    #[must_use]
    pub fn new(seed: u64, number: u64) -> Self {
        Self(seed.wrapping_add(number.wrapping_mul(Self::STEP)))
    }

    /// Returns the next 64 random bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a uniformly distributed factor in `1 - spread .. 1 + spread`.
    pub fn factor(&mut self, spread: f64) -> f64 {
        let unit = (self.next_bits() >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + spread * (2.0 * unit - 1.0)
    }
}
