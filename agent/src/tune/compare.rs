//! Comparison of two choices with noisy measurements: medians, and a confidence interval of their ratio.

use regatta_random::SplitMix64;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1_000;

/// Whether a larger or a smaller figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// A larger one: samples or queries per second.
    Maximize,
    /// A smaller one: milliseconds.
    Minimize,
}

impl Goal {
    /// Returns how many times better `one` is than `other`.
    pub(super) fn ratio(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Maximize => one / other,
            Self::Minimize => other / one,
        }
    }
}

/// How many times better one choice is than another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    /// The ratio of the medians.
    pub(super) median: f64,
    /// The 95 % interval of the bootstrap.
    pub(super) interval: (f64, f64),
}

impl Ratio {
    /// Compares two non-empty series of measurements. The result is deterministic.
    pub(super) fn of(goal: Goal, one: &[f64], other: &[f64]) -> Self {
        let mut random = SplitMix64::new(0x7265_6761_7474_6121);
        let mut ratios: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let (one, other) = (resample(one, &mut random), resample(other, &mut random));
                goal.ratio(median(&one), median(&other))
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let at = |share: usize| ratios[(RESAMPLES * share / 1000).min(RESAMPLES - 1)];
        Self {
            median: goal.ratio(median(one), median(other)),
            interval: (at(25), at(975)),
        }
    }

    /// Returns whether the first is better: the complete interval is above 1.
    pub(super) fn is_better(&self) -> bool {
        self.interval.0 > 1.0
    }

    /// Returns whether the second is better: the complete interval is below 1.
    pub(super) fn is_worse(&self) -> bool {
        self.interval.1 < 1.0
    }
}

fn resample(values: &[f64], random: &mut SplitMix64) -> Vec<f64> {
    let count = values.len() as u64;
    let mut pick = || values[usize::try_from(random.below(count)).unwrap_or(0)];
    values.iter().map(|_| pick()).collect()
}

/// Returns the median. For an even number of values, it is the mean of the middle two. For none, it is NaN.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.get(sorted.len() / 2), sorted.len() % 2) {
        (Some(&middle), 1) => middle,
        (Some(&upper), _) => sorted[sorted.len() / 2 - 1].midpoint(upper),
        (None, _) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clear_difference_is_distinguished_from_noise() {
        let (slow, quick) = (
            [100.0, 101.0, 99.0, 100.5, 99.5],
            [110.0, 109.0, 111.0, 110.5, 109.5],
        );
        let ratio = Ratio::of(Goal::Maximize, &quick, &slow);
        assert!(
            (ratio.median - 1.1).abs() < 1e-9 && ratio.is_better(),
            "{ratio:?}"
        );
        assert!(Ratio::of(Goal::Minimize, &quick, &slow).is_worse());
        let (one, other) = (
            [100.0, 120.0, 80.0, 101.0, 99.0],
            [102.0, 79.0, 121.0, 98.0, 103.0],
        );
        let ratio = Ratio::of(Goal::Maximize, &one, &other);
        assert!(!ratio.is_better() && !ratio.is_worse(), "{ratio:?}");
        assert_eq!(
            ratio,
            Ratio::of(Goal::Maximize, &one, &other),
            "by chance, but by the same"
        );
    }

    #[test]
    fn medians_are_of_odd_and_even_numbers() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
    }
}
