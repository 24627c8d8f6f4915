//! The samples of an Offline query: computed from their position, or kept in memory when they are shuffled.

use super::{LoadableSet, order::from_u64};
use crate::{
    effective::EffectiveSettings,
    rng::{Mt19937, RngAbi},
};

/// The sample indices of the single query, by position.
#[derive(Debug, Clone)]
pub struct OfflineSamples<'a> {
    set: &'a LoadableSet,
    length: usize,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// The loaded set, repeated.
    Repeated,
    /// One sample, repeated.
    Same(usize),
    /// The loaded set, repeated in a new order each time.
    Shuffled(Vec<u32>),
}

impl<'a> OfflineSamples<'a> {
    pub(super) fn new(
        settings: &EffectiveSettings,
        set: &'a LoadableSet,
        length: usize,
        abi: RngAbi,
        generator: &mut Mt19937,
    ) -> Self {
        let kind = if settings.performance_issue_same {
            Kind::Same(set.samples[from_u64(settings.performance_issue_same_index)])
        } else if settings.sample_concatenate_permutation {
            Kind::Shuffled(shuffled(&set.samples, length, abi, generator))
        } else {
            Kind::Repeated
        };
        Self { set, length, kind }
    }

    /// Returns the number of samples.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no samples.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the library index of the sample at `position`.
    #[inline]
    #[must_use]
    pub fn index(&self, position: usize) -> usize {
        match &self.kind {
            Kind::Repeated => self.set.samples[position % self.set.samples.len()],
            Kind::Same(index) => *index,
            Kind::Shuffled(indices) => indices[position] as usize,
        }
    }
}

/// Shuffles each complete repetition. A remainder, which only accuracy settings could cause, is not shuffled.
fn shuffled(samples: &[usize], length: usize, abi: RngAbi, generator: &mut Mt19937) -> Vec<u32> {
    #[expect(clippy::cast_possible_truncation, reason = "library indices are below 2^32")]
    let mut indices: Vec<u32> = samples.iter().map(|&s| s as u32).cycle().take(length).collect();
    for repeat in indices.chunks_exact_mut(samples.len()) {
        abi.shuffle(repeat, generator);
    }
    indices
}
