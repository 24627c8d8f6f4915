//! The verdict on the log-ratios of pairs.

use crate::{
    AaFloor,
    bootstrap::bootstrap_interval,
    order_interval::{MIN_PAIRS, median_interval},
    plan::{pair_deviation, pairs_for_effect, pairs_for_sameness},
    robust::median,
};

/// Which figures are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// Latencies.
    Smaller,
    /// Rates.
    Larger,
}

/// What a comparison says about B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// B is better: the interval is without 1, and the ratio is beyond the floor.
    Better,
    /// B is worse, likewise.
    Worse,
    /// The complete interval is within the floor.
    Same,
    /// The pairs decide nothing.
    Undecided(MorePairs),
}

/// How many more pairs would decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MorePairs {
    /// As many, with 98 % probability ([`plan::POWER`](crate::plan::POWER)), if difference and noise are as the present pairs show.
    Enough(usize),
    /// A lower bound: fewer pairs have no interval.
    AtLeast(usize),
    /// More than a comparison may have: the ratio is too close to the floor, or the noise too large.
    TooMany,
}

/// A comparison of B with A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The number of pairs.
    pub pairs: usize,
    /// The median of B's figure divided by A's.
    pub ratio: f64,
    /// The exact 95 % interval of that median, which the verdict uses. `None` for fewer than [`MIN_PAIRS`] pairs.
    pub interval: Option<[f64; 2]>,
    /// The bootstrap's interval, for readers.
    pub bootstrap: Option<[f64; 2]>,
    /// The floor.
    pub floor: AaFloor,
    /// The verdict.
    pub verdict: Verdict,
}

/// Compares B with A. A stratum has the natural logarithms of B's figure divided by A's, for the pairs of one device. `None` without a
/// pair.
#[must_use]
pub fn compare(strata: &[&[f64]], direction: Direction, floor: AaFloor) -> Option<Comparison> {
    let all: Vec<f64> = strata.concat();
    if all.is_empty() {
        return None;
    }
    let ratios = |ends: [f64; 2]| ends.map(f64::exp);
    Some(Comparison {
        pairs: all.len(),
        ratio: median(&all).exp(),
        interval: median_interval(&all).map(ratios),
        bootstrap: bootstrap_interval(strata).map(ratios),
        floor,
        verdict: judge(&all, direction, floor.log()),
    })
}

/// Returns the verdict on log-ratios, of which there is at least one. `floor` is a log-ratio.
pub(crate) fn judge(all: &[f64], direction: Direction, floor: f64) -> Verdict {
    verdict(all, median(all), median_interval(all), direction, floor)
}

fn verdict(
    all: &[f64],
    middle: f64,
    interval: Option<[f64; 2]>,
    direction: Direction,
    floor: f64,
) -> Verdict {
    let Some([low, high]) = interval else {
        return Verdict::Undecided(MorePairs::AtLeast(MIN_PAIRS - all.len()));
    };
    if middle.abs() > floor && (low > 0.0 || high < 0.0) {
        return if (middle > 0.0) == (direction == Direction::Larger) {
            Verdict::Better
        } else {
            Verdict::Worse
        };
    }
    if low > -floor && high < floor {
        return Verdict::Same;
    }
    let deviation = pair_deviation(all);
    let needed = pairs_for_effect(middle, deviation, floor, all.len())
        .or_else(|| pairs_for_sameness(middle, deviation, floor, all.len()));
    Verdict::Undecided(needed.map_or(MorePairs::TooMany, |needed| MorePairs::Enough(needed - all.len())))
}

impl Verdict {
    /// Returns the word in tables and documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Undecided(_) => "undecided",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judged(log_ratios: &[f64], direction: Direction) -> Verdict {
        compare(&[log_ratios], direction, AaFloor::measured(&[]))
            .unwrap()
            .verdict
    }

    #[test]
    fn each_verdict_has_its_conditions() {
        let slower = [0.05, 0.04, 0.06, 0.05, 0.05, 0.045];
        assert_eq!(judged(&slower, Direction::Smaller), Verdict::Worse);
        assert_eq!(judged(&slower, Direction::Larger), Verdict::Better);
        let tiny = slower.map(|value| value / 10.0);
        assert_eq!(
            judged(&tiny, Direction::Smaller),
            Verdict::Same,
            "without 0, and within the floor"
        );
        let beyond_in_part = [0.004, 0.02, 0.008, 0.009, 0.012, 0.006];
        assert!(matches!(
            judged(&beyond_in_part, Direction::Smaller),
            Verdict::Undecided(MorePairs::Enough(_) | MorePairs::TooMany)
        ));
        let with_both_signs = [0.05, 0.04, 0.06, 0.05, 0.05, -0.01];
        assert!(matches!(
            judged(&with_both_signs, Direction::Smaller),
            Verdict::Undecided(MorePairs::Enough(_))
        ));
        assert_eq!(
            judged(&[0.5], Direction::Smaller),
            Verdict::Undecided(MorePairs::AtLeast(5))
        );
        assert_eq!(compare(&[], Direction::Smaller, AaFloor::measured(&[])), None);
    }

    #[test]
    fn equal_pairs_have_an_equal_bootstrap_in_any_order() {
        let pairs = [0.01, 0.02, -0.03, 0.04, 0.0, 0.02, 0.01];
        let mut reversed = pairs;
        reversed.reverse();
        let floor = AaFloor::measured(&[]);
        let compared = |pairs: &[f64]| compare(&[pairs], Direction::Larger, floor).unwrap();
        assert_eq!(compared(&pairs), compared(&reversed));
    }

    proptest! {
        #[test]
        fn swapping_the_sides_swaps_the_verdict(log_ratios in proptest::collection::vec(-0.2..0.2_f64, 1..40)) {
            let swapped: Vec<f64> = log_ratios.iter().map(|value| -value).collect();
            let expected = match judged(&log_ratios, Direction::Larger) {
                Verdict::Better => Verdict::Worse,
                Verdict::Worse => Verdict::Better,
                other => other,
            };
            prop_assert_eq!(judged(&swapped, Direction::Larger), expected);
        }

        #[test]
        fn a_difference_is_beyond_the_floor_with_an_interval_on_its_side(log_ratios in proptest::collection::vec(-0.05..0.06_f64, 6..40)) {
            let found = compare(&[&log_ratios], Direction::Larger, AaFloor::measured(&[])).unwrap();
            let [low, high] = found.interval.unwrap();
            prop_assert!(low <= found.ratio && found.ratio <= high);
            match found.verdict {
                Verdict::Better => prop_assert!(low > 1.0 && found.ratio > 1.01),
                Verdict::Worse => prop_assert!(high < 1.0 && found.ratio < 1.0 / 1.01),
                Verdict::Same => prop_assert!(low > 1.0 / 1.01 && high < 1.01),
                Verdict::Undecided(MorePairs::Enough(more)) => prop_assert!(more > 0),
                Verdict::Undecided(_) => {}
            }
        }
    }
}
