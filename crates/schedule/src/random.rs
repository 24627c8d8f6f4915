//! A small generator for repeatable models: SplitMix64. Not for LoadGen, whose generators are the official ones.

/// SplitMix64 from a seed.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The sequence `number` of `seed`: streams that draw from sequences of their own do not disturb each other.
    #[must_use]
    pub fn new(seed: u64, number: u64) -> Self {
        Self(seed.wrapping_add(number.wrapping_mul(Self::STEP)))
    }

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Uniform in `1 - spread .. 1 + spread`.
    pub fn factor(&mut self, spread: f64) -> f64 {
        let unit = (self.next_bits() >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + spread * (2.0 * unit - 1.0)
    }
}
