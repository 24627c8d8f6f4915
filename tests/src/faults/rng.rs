//! The random numbers of fault campaigns: a seed gives the same plan on every machine and with every library version.

use regatta_random::SplitMix64;

/// A seeded generator.
#[derive(Debug, Clone)]
pub struct Rng(SplitMix64);

impl Rng {
    /// Creates a generator. Equal seeds give equal sequences.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Returns 64 random bits.
    pub const fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Returns a number from `low` to `high` inclusive.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// Returns `true` with a probability of `share` percent.
    pub const fn percent(&mut self, share: u64) -> bool {
        self.between(1, 100) <= share
    }

    /// Returns a random element.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// Shuffles a list.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let other = self.index(last + 1);
            list.swap(last, other);
        }
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.between(0, length as u64 - 1)).unwrap_or(0)
    }
}
