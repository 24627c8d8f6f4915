//! Early stopping: the number of slow queries that a run of a given length may discard. The run must still meet its percentile with 99 %
//! confidence. The statistics are LoadGen's: the CDF of the binomial distribution by the incomplete beta function (DLMF 8.17).
//!
//! LoadGen searches the number of passing queries for 1, 2, 3 ... slow ones until the run is too short. The condition is monotone, so
//! bisection finds the same number in milliseconds.

const CONFIDENCE: f64 = 0.99;

/// Returns how many of the slowest of `queries` represent the target percentile `fraction`. The estimate is the latency of the last of
/// them. `None` if the run is too short for any.
#[must_use]
pub fn slow_queries(queries: u64, fraction: f64) -> Option<u64> {
    if queries < fewest_queries(fraction) {
        return None;
    }
    let (mut passing, mut failing) = (1, queries);
    while failing - passing > 1 {
        let middle = passing + (failing - passing) / 2;
        if odds(queries - middle, middle, fraction) < 1.0 - CONFIDENCE {
            passing = middle;
        } else {
            failing = middle;
        }
    }
    Some(passing)
}

/// Returns the fewest queries with which early stopping can estimate the percentile `fraction`.
#[must_use]
pub fn fewest_queries(fraction: f64) -> u64 {
    passing_queries(1, fraction) + 1
}

/// Returns how many queries must meet the bound if `slow` do not. The search range is LoadGen's. When the range does not contain the true
/// value, the result is the same as LoadGen's.
#[must_use]
pub fn passing_queries(slow: u64, fraction: f64) -> u64 {
    let slow_f = to_f64(slow);
    let without_slow = ((1.0 - CONFIDENCE).ln() / fraction.ln()).ceil();
    let mut low = to_u64(slow_f * (fraction / (1.0 - fraction)) + without_slow);
    let mut count = to_u64(slow_f * without_slow + without_slow + 1.0).saturating_sub(low);
    while count > 0 {
        let step = count / 2;
        if odds(low + step, slow, fraction) < 1.0 - CONFIDENCE {
            count = step;
        } else {
            low += step + 1;
            count -= step + 1;
        }
    }
    low
}

/// Returns the probability of at most `slow` slow queries in `passing + slow`, each slow with probability `1 - fraction`.
fn odds(passing: u64, slow: u64, fraction: f64) -> f64 {
    beta_regularized(fraction, passing, 1 + slow)
}

/// Returns the regularized incomplete beta function for integers, by DLMF 15.8.1 and the series 15.2.1.
fn beta_regularized(x: f64, a: u64, b: u64) -> f64 {
    let (a_f, b_f) = (to_f64(a), to_f64(b));
    let log_beta = libm::lgamma(a_f) + libm::lgamma(b_f) - libm::lgamma(a_f + b_f);
    let factor = (a_f * x.ln() + (b_f - 1.0) * (1.0 - x).ln() - log_beta).exp() / a_f;
    factor * hypergeometric(1.0 - b_f, 1.0 + a_f, x / (x - 1.0))
}

/// Returns the hypergeometric function with a first parameter of 1. `b` is not positive, so the series ends.
fn hypergeometric(b: f64, c: f64, x: f64) -> f64 {
    const TOLERANCE: f64 = 1.0 / (1_u64 << 33) as f64;
    let (mut term, mut result, mut i) = (1.0_f64, 1.0, 0.0);
    while term.abs() > TOLERANCE {
        term *= (b + i) * x / (c + i);
        result += term;
        i += 1.0;
    }
    result
}

#[expect(clippy::cast_precision_loss, reason = "LoadGen computes in doubles")]
const fn to_f64(n: u64) -> f64 {
    n as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "LoadGen truncates"
)]
const fn to_u64(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in inference_rules, "early stopping criteria": fewest queries without a slow one.
    #[test]
    fn the_rules_minimum_counts() {
        assert_eq!(fewest_queries(0.90), 64);
        assert_eq!(fewest_queries(0.99), 662);
        assert_eq!(fewest_queries(0.999), 6636);
    }

    #[test]
    fn bisection_agrees_with_counting_up() {
        for fraction in [0.9, 0.97, 0.99] {
            let mut slow = 1;
            for queries in fewest_queries(fraction)..3000 {
                while queries > passing_queries(slow + 1, fraction) + slow {
                    slow += 1;
                }
                assert_eq!(
                    slow_queries(queries, fraction),
                    Some(slow),
                    "{queries} at {fraction}"
                );
            }
        }
    }
}
