//! The order in which positions of a loaded set are issued.

use crate::rng::{Mt19937, RngAbi};

/// A source of positions in the loaded set.
#[derive(Debug, Clone)]
pub(super) enum Order {
    /// Independent, uniform positions below `bound` (performance runs).
    Uniform {
        /// The sample generator, advanced past the shuffles that LoadGen computes without using them.
        generator: Mt19937,
        /// Number of positions.
        bound: u64,
        /// The method of drawing numbers below the bound.
        abi: RngAbi,
    },
    /// Each position once, in shuffled order (accuracy runs, unique issue).
    Once {
        /// The shuffled positions.
        positions: Vec<u32>,
        /// Number of issued positions.
        next: usize,
    },
    /// Always the same position.
    Same(usize),
    /// Consecutive permutations of the complete set ("equal issue").
    Permutations(Permutations),
}

impl Order {
    /// Returns the next position. The plan guarantees that there is one.
    #[inline]
    pub(super) fn next(&mut self) -> usize {
        match self {
            Self::Uniform {
                generator,
                bound,
                abi,
            } => from_u64(abi.uniform_below(generator, *bound)),
            Self::Once { positions, next } => {
                let position = positions[*next % positions.len()];
                *next += 1;
                position as usize
            }
            Self::Same(position) => *position,
            Self::Permutations(permutations) => permutations.next(),
        }
    }
}

/// Permutations, each a shuffle of the previous one. After the last one they repeat from the first.
#[derive(Debug, Clone)]
pub(super) struct Permutations {
    abi: RngAbi,
    beginning: Mt19937,
    generator: Mt19937,
    current: Vec<u32>,
    next: usize,
    distinct: u64,
    begun: u64,
}

impl Permutations {
    /// Creates `distinct` permutations of `length` positions, from the current state of `generator`.
    pub(super) fn new(abi: RngAbi, generator: Mt19937, length: usize, distinct: u64) -> Self {
        Self {
            abi,
            beginning: generator.clone(),
            generator,
            current: identity(length),
            next: length,
            distinct,
            begun: 0,
        }
    }

    fn next(&mut self) -> usize {
        if self.next == self.current.len() {
            self.begin();
        }
        let position = self.current[self.next];
        self.next += 1;
        position as usize
    }

    fn begin(&mut self) {
        if self.begun == self.distinct {
            self.begun = 0;
            self.generator = self.beginning.clone();
            self.current = identity(self.current.len());
        }
        self.abi.shuffle(&mut self.current, &mut self.generator);
        self.begun += 1;
        self.next = 0;
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "loadable sets hold less than 2^32 samples"
)]
pub(super) fn identity(length: usize) -> Vec<u32> {
    (0..length as u32).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "below a bound that was a usize")]
pub(super) const fn from_u64(n: u64) -> usize {
    n as usize
}
