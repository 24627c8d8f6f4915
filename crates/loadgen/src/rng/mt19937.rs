//! The Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), with the seeding and output of `std::mt19937`.

const WORDS: usize = 624;
const SHIFT: usize = 397;
const TWIST: u32 = 0x9908_B0DF;
const UPPER: u32 = 0x8000_0000;

/// The generator. Its state is 2.5 kB.
#[derive(Clone)]
pub struct Mt19937 {
    state: Box<[u32; WORDS]>,
    next: usize,
}

impl Mt19937 {
    /// Creates a generator. Only the lower 32 bits of a 64-bit seed count, as in libstdc++.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = Box::new([0; WORDS]);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the standard takes the seed modulo 2^32"
        )]
        let mut word = seed as u32;
        state[0] = word;
        for (index, slot) in (1_u32..).zip(&mut state[1..]) {
            word = (word ^ (word >> 30))
                .wrapping_mul(1_812_433_253)
                .wrapping_add(index);
            *slot = word;
        }
        Self { state, next: WORDS }
    }

    /// Returns the next 32 random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        if self.next == WORDS {
            self.refill();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9D2C_5680;
        word ^= (word << 15) & 0xEFC6_0000;
        word ^ (word >> 18)
    }

    /// Computes the recurrence in three sections, so that no index needs a remainder: every query depends on this code.
    fn refill(&mut self) {
        let state = &mut *self.state;
        for index in 0..WORDS - SHIFT {
            state[index] = state[index + SHIFT] ^ mixed(state[index], state[index + 1]);
        }
        for index in WORDS - SHIFT..WORDS - 1 {
            state[index] = state[index + SHIFT - WORDS] ^ mixed(state[index], state[index + 1]);
        }
        state[WORDS - 1] = state[SHIFT - 1] ^ mixed(state[WORDS - 1], state[0]);
        self.next = 0;
    }
}

#[inline]
const fn mixed(upper: u32, lower: u32) -> u32 {
    let word = (upper & UPPER) | (lower & !UPPER);
    (word >> 1) ^ ((word & 1) * TWIST)
}

impl Default for Mt19937 {
    /// Creates a generator with the standard's default seed, 5489.
    fn default() -> Self {
        Self::new(5489)
    }
}

impl std::fmt::Debug for Mt19937 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mt19937")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The C++ standard, [rand.predef]: the 10000th number of a default-seeded generator is 4123659995.
    #[test]
    fn the_ten_thousandth_number_is_that_of_the_standard() {
        let mut generator = Mt19937::default();
        for _ in 1..10_000 {
            generator.next_u32();
        }
        assert_eq!(generator.next_u32(), 4_123_659_995);
    }

    #[test]
    fn only_the_lower_half_of_a_seed_counts() {
        let mut a = Mt19937::new(0xFFFF_FFFF_0000_0007);
        let mut b = Mt19937::new(7);
        assert!((0..1000).all(|_| a.next_u32() == b.next_u32()));
    }
}
