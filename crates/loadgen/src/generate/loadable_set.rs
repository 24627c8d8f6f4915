//! Loadable sets: samples that are in memory together.

use regatta_types::Scenario;

use super::PlanError;
use crate::{
    effective::EffectiveSettings,
    rng::{Mt19937, RngAbi},
};

/// Samples that are loaded together, in the order of their positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadableSet {
    /// Library indices. MultiStream appends the first few again, so that a query may begin at any position.
    pub samples: Vec<usize>,
    /// Number of samples without that padding.
    pub distinct: usize,
}

/// Shuffles the first `needed` samples of a library of `total` and splits them into loadable sets. A performance run only uses the first
/// set.
///
/// # Errors
/// When there are no samples, or more than 32 bits can count.
pub fn loadable_sets(
    settings: &EffectiveSettings,
    total: u64,
    needed: u64,
    abi: RngAbi,
) -> Result<Vec<LoadableSet>, PlanError> {
    let count = total.min(needed);
    if count == 0 {
        return Err(PlanError::NoSamples);
    }
    let padding = match settings.scenario {
        Scenario::MultiStream => settings
            .samples_per_query
            .checked_sub(1)
            .ok_or(PlanError::EmptyQuery)?,
        _ => 0,
    };
    let within_u32 = |n: u64| u32::try_from(n).map_err(|_| PlanError::TooManySamples(n));
    within_u32(count.saturating_add(padding))?;
    let mut samples: Vec<usize> = (0..usize_of(count)).collect();
    abi.shuffle(&mut samples, &mut Mt19937::new(settings.qsl_rng_seed));

    let set_size = match settings.performance_sample_count {
        0 => samples.len(),
        size => usize_of(size.min(count)),
    };
    Ok(samples
        .chunks(set_size)
        .map(|set| padded(set, usize_of(padding)))
        .collect())
}

fn padded(set: &[usize], padding: usize) -> LoadableSet {
    let samples = set.iter().copied().cycle().take(set.len() + padding).collect();
    LoadableSet {
        samples,
        distinct: set.len(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "callers have checked that it fits 32 bits"
)]
const fn usize_of(n: u64) -> usize {
    n as usize
}
