//! The bootstrap interval of a median. It is printed beside the exact interval and decides nothing, because it covers the median too
//! rarely with few values (docs/decisions/0090).

use regatta_random::SplitMix64;

use crate::robust::{median, median_of_sorted, sorted};

/// How often the values are drawn again.
const RESAMPLES: usize = 2000;
/// Where each sequence of random numbers begins, so that equal values have an equal interval.
const SEED: u64 = 0x5265_6761_7474_6121;

/// Returns the 95 % percentile bootstrap interval of the median of all strata's values together. Values are drawn again within their
/// stratum. Equal strata have an equal interval. `None` without values.
#[must_use]
pub fn bootstrap_interval(strata: &[&[f64]]) -> Option<[f64; 2]> {
    if strata.iter().all(|stratum| stratum.is_empty()) {
        return None;
    }
    let strata: Vec<Vec<f64>> = strata.iter().map(|stratum| sorted(stratum)).collect();
    let mut random = SplitMix64::new(SEED);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = strata.iter().flat_map(|stratum| {
                let draws: Vec<f64> = stratum
                    .iter()
                    .map(|_| stratum[random.below(stratum.len() as u64) as usize])
                    .collect();
                draws
            });
            median(&drawn.collect::<Vec<_>>())
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    debug_assert!(!median_of_sorted(&medians).is_nan());
    Some([medians[RESAMPLES / 40 - 1], medians[RESAMPLES - RESAMPLES / 40]])
}
