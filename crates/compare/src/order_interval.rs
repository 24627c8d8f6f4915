//! The 95 % interval of a median between two of the sorted values, exact for every continuous distribution (the interval of the sign
//! test).

use crate::{binomial::fair_successes_within, robust::sorted};

/// The fewest pairs that have a 95 % interval: the range of five values covers the median in only 93.75 % of cases.
pub const MIN_PAIRS: usize = 6;

/// The probability that the interval ends beyond the median, on each side.
const TAIL: f64 = 0.025;

/// Returns how many of `n` values are at or beyond an end of the interval, counted with the end: 1 is the range. `None` for fewer than
/// [`MIN_PAIRS`].
pub(crate) fn rank(n: usize) -> Option<usize> {
    match fair_successes_within(TAIL, n) {
        0 => None,
        rank => Some(rank),
    }
}

/// Returns the ends of the interval that covers the median of the values' distribution with at least 95 % probability. `None` for fewer
/// than [`MIN_PAIRS`] values.
#[must_use]
pub fn median_interval(values: &[f64]) -> Option<[f64; 2]> {
    let rank = rank(values.len())?;
    let sorted = sorted(values);
    Some([sorted[rank - 1], sorted[sorted.len() - rank]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_published_tables() {
        // Conover, Practical Nonparametric Statistics: the sign test's ranks at 95 %.
        let ranks = [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (12, Some(3)),
            (20, Some(6)),
            (25, Some(8)),
            (50, Some(18)),
        ];
        for (n, expected) in ranks {
            assert_eq!(rank(n), expected, "{n} values");
        }
        assert_eq!(rank(MIN_PAIRS - 1), None);
        assert!(rank(MIN_PAIRS).is_some());
    }
}
