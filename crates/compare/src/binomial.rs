//! Probabilities of the binomial and the normal distribution.

/// The most trials that are summed: `0.5^1000` is still a normal number.
const EXACT_TRIALS: usize = 1000;

/// Returns the probability of at most `most` successes in `trials` trials, each with probability `p`. Above 1,000 trials it is that of the
/// normal distribution with continuity correction.
pub(crate) fn at_most(most: usize, trials: usize, p: f64) -> f64 {
    if most >= trials || p <= 0.0 {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    if trials > EXACT_TRIALS {
        let n = trials as f64;
        return normal((most as f64 + 0.5 - n * p) / (n * p * (1.0 - p)).sqrt());
    }
    if p > 0.5 {
        return 1.0 - at_most(trials - most - 1, trials, 1.0 - p);
    }
    terms(trials, p).take(most + 1).sum::<f64>().min(1.0)
}

/// Returns the probabilities of 0, 1, 2 ... successes. `p` is at most 0.5 and `trials` at most [`EXACT_TRIALS`].
fn terms(trials: usize, p: f64) -> impl Iterator<Item = f64> {
    let (n, odds) = (trials as f64, p / (1.0 - p));
    let first = (n * (-p).ln_1p()).exp();
    std::iter::successors(Some((0.0, first)), move |&(k, term)| {
        Some((k + 1.0, term * odds * (n - k) / (k + 1.0)))
    })
    .map(|(_, term)| term)
}

/// Returns how many successes of `trials` fair trials have a probability of at most `tail` together, counted from 0 successes.
pub(crate) fn fair_successes_within(tail: f64, trials: usize) -> usize {
    if trials > EXACT_TRIALS {
        let within = |most: &usize| at_most(*most, trials, 0.5) <= tail;
        return (0..trials).take_while(within).count();
    }
    let mut sum = 0.0;
    terms(trials, 0.5)
        .take(trials)
        .take_while(|term| {
            sum += term;
            sum <= tail
        })
        .count()
}

/// Returns the probability that a standard normal value is at most `x`.
pub(crate) fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// Returns the value that a standard normal one is below with probability `p`, within 1e-9. `p` is between 0 and 1.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    while high - low > 1e-9 {
        let middle = f64::midpoint(low, high);
        if normal(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_probabilities_are_met() {
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        close(at_most(0, 6, 0.5), 1.0 / 64.0);
        close(at_most(1, 9, 0.5), 10.0 / 512.0);
        close(at_most(2, 3, 0.2), 1.0 - 0.008);
        close(at_most(3, 3, 0.2), 1.0);
        close(normal(0.0), 0.5);
        close(normal(normal_quantile(0.975)), 0.975);
        assert!((normal_quantile(0.975) - 1.959_963_985).abs() < 1e-8);
    }

    #[test]
    fn many_trials_do_not_underflow_to_nonsense() {
        let half = at_most(500, 1001, 0.5);
        assert!((half - 0.5).abs() < 1e-9, "{half}");
    }
}
