//! `SplitMix64`, a small generator of random numbers for simulations, resampling and tests: a seed gives the same numbers on every machine and
//! with every version of a library. Not for secrets.
//!
//! LoadGen implements the official generators itself, because MLPerf's rules name their sequences.

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Returns the generator of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the generator of sequence `number` of a seed. Draws from one sequence do not affect another.
    #[must_use]
    pub const fn sequence(seed: u64, number: u64) -> Self {
        Self(seed.wrapping_add(number.wrapping_mul(Self::STEP)))
    }

    /// Returns the next 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `bound`; 0 for a bound of 0. The bias is less than `bound` in 2^64.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() as u128 * bound as u128) >> u64::BITS) as u64
    }

    /// Returns a number from 0 to less than 1, a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a factor from `1 - spread` to less than `1 + spread`.
    pub fn factor(&mut self, spread: f64) -> f64 {
        1.0 + spread * (2.0 * self.unit() - 1.0)
    }

    /// Returns that many random bytes.
    #[must_use]
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.bits().to_le_bytes());
        words.flatten().take(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The first numbers of Vigna's splitmix64.c for the seed 1234567.
        let mut random = SplitMix64::new(1_234_567);
        let first = [(); 5].map(|()| random.bits());
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn numbers_stay_in_their_range_and_fill_it() {
        let mut random = SplitMix64::new(0);
        let mut seen = [false; 7];
        for _ in 0..200 {
            seen[random.below(7) as usize] = true;
            assert!((0.0..1.0).contains(&random.unit()));
        }
        assert_eq!((seen, random.below(0)), ([true; 7], 0));
    }

    #[test]
    fn sequences_differ_and_begin_alike_with_their_seed() {
        assert_eq!(SplitMix64::sequence(9, 0).bits(), SplitMix64::new(9).bits());
        assert_ne!(SplitMix64::sequence(9, 1).bits(), SplitMix64::new(9).bits());
        let bytes = SplitMix64::new(9).bytes(11);
        assert_eq!(bytes.len(), 11);
        assert_eq!(bytes[..8], SplitMix64::new(9).bits().to_le_bytes());
    }
}
