//! How many pairs a comparison needs, computed from the exact distribution of its interval and of its median when the log-ratios of pairs
//! are normal with a known deviation.

use crate::{
    binomial::{at_most, normal, normal_quantile},
    order_interval::{MIN_PAIRS, median_interval, rank},
    robust::normal_deviation,
};

/// The probability with which a plan's pairs lead to the verdict. Above the promised 95 %, because the noise is an estimate.
pub const POWER: f64 = 0.98;
/// The most pairs that a plan has.
pub const MAX_PAIRS: usize = 1000;

/// Returns the fewest pairs, more than `after`, that find an effect with a probability of at least [`POWER`]. An effect has an
/// interval without 0 and a median beyond the floor. All are log-ratios; `deviation` is the standard deviation of a pair. `None`
/// when the effect is not beyond the floor, or needs more than [`MAX_PAIRS`].
#[must_use]
pub fn pairs_for_effect(effect: f64, deviation: f64, floor: f64, after: usize) -> Option<usize> {
    let effect = effect.abs();
    if effect <= floor {
        return None;
    }
    let below_zero = share_below(0.0, effect, deviation);
    let below_floor = share_below(floor, effect, deviation);
    fewest(after, |n, rank| {
        let has_sign = at_most(rank - 1, n, below_zero);
        // Both middle values of an even number are beyond the floor.
        let is_beyond = at_most((n - 1) / 2, n, below_floor);
        // Not less than the probability of both (Bonferroni).
        has_sign + is_beyond - 1.0
    })
}

/// Returns the fewest pairs, more than `after`, whose interval is within the floor with a probability of at least [`POWER`]. `None` as in
/// [`pairs_for_effect`], when the effect is not within the floor.
#[must_use]
pub fn pairs_for_sameness(effect: f64, deviation: f64, floor: f64, after: usize) -> Option<usize> {
    if effect.abs() >= floor {
        return None;
    }
    let above = 1.0 - share_below(floor, effect, deviation);
    let below = share_below(-floor, effect, deviation);
    fewest(after, |n, rank| {
        at_most(rank - 1, n, above) + at_most(rank - 1, n, below) - 1.0
    })
}

/// Estimates the standard deviation of a pair: the larger of the one by the median absolute deviation and the one that the interval's
/// width shows. Zero for fewer than two pairs.
#[must_use]
pub fn pair_deviation(log_ratios: &[f64]) -> f64 {
    if log_ratios.len() < 2 {
        return 0.0;
    }
    let by_mad = normal_deviation(log_ratios);
    let ends = median_interval(log_ratios).zip(rank(log_ratios.len()));
    ends.map_or(by_mad, |([low, high], rank)| {
        // Blom's approximation of the expected place of the interval's ends.
        let place = (rank as f64 - 0.375) / (log_ratios.len() as f64 + 0.25);
        by_mad.max((high - low) / (2.0 * normal_quantile(1.0 - place)))
    })
}

fn share_below(limit: f64, mean: f64, deviation: f64) -> f64 {
    normal((limit - mean) / deviation.max(f64::MIN_POSITIVE))
}

fn fewest(after: usize, probability: impl Fn(usize, usize) -> f64) -> Option<usize> {
    (MIN_PAIRS.max(after + 1)..=MAX_PAIRS)
        .find(|&n| rank(n).is_some_and(|rank| probability(n, rank) >= POWER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_noise_needs_more_pairs_and_an_effect_in_the_floor_is_never_found() {
        let floor = 0.01_f64.ln_1p();
        let pairs = |deviation| pairs_for_effect(0.03_f64.ln_1p(), deviation, floor, 0);
        let planned: Vec<_> = [0.0, 0.005, 0.01, 0.02, 0.03].map(pairs).to_vec();
        assert_eq!(
            planned[0],
            Some(MIN_PAIRS),
            "without noise the interval is all that is needed"
        );
        assert!(planned.is_sorted() && planned[4] > planned[1], "{planned:?}");
        assert_eq!(pairs(5.0), None);
        assert_eq!(pairs_for_effect(floor, 0.001, floor, 0), None);
        assert_eq!(pairs_for_sameness(floor, 0.001, floor, 0), None);
        assert_eq!(pairs_for_sameness(0.0, 0.001, floor, 0), Some(MIN_PAIRS));
        assert_eq!(pairs_for_sameness(0.0, 0.001, floor, 9), Some(10));
    }

    #[test]
    fn the_deviation_is_not_below_what_the_interval_shows() {
        let tight = [0.0, 0.001, -0.001, 0.002, -0.002, 0.0];
        let with_outlier = [0.0, 0.001, -0.001, 0.002, -0.002, 0.3];
        assert!(pair_deviation(&tight) < 0.003);
        assert!(
            pair_deviation(&with_outlier) > 0.1,
            "six pairs have their range as interval"
        );
        assert_eq!(pair_deviation(&[0.1]), 0.0);
    }
}
