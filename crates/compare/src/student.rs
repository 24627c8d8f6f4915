//! Student's t-test of two samples by their means and deviations.

/// Mean, population standard deviation and size of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
    pub(crate) size: f64,
}

impl Sample {
    /// Describes values, of which there is at least one.
    pub(crate) fn of(values: &[f64]) -> Self {
        let size = values.len() as f64;
        let mean = values.iter().sum::<f64>() / size;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / size;
        Self {
            mean,
            deviation: variance.sqrt(),
            size,
        }
    }
}

/// Returns the two-sided p-value of equal means, for equal variances; 1 for two values, NaN for values without any variance and difference.
/// As in Otava, the deviations are those of the population where the test expects those of the sample.
pub(crate) fn p_value(left: Sample, right: Sample) -> f64 {
    let freedom = left.size + right.size - 2.0;
    if freedom <= 0.0 {
        return 1.0;
    }
    let sum = (left.size - 1.0) * left.deviation.powi(2) + (right.size - 1.0) * right.deviation.powi(2);
    let error = (sum / freedom * (1.0 / left.size + 1.0 / right.size)).sqrt();
    let t = (left.mean - right.mean) / error;
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// Returns the regularised incomplete beta function, by its continued fraction (Numerical Recipes, 6.4).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 || x >= 1.0 {
        return x;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let log_front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    log_front.exp() / a * continued_fraction(a, b, x)
}

/// Evaluates the fraction by Lentz's method.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const STEPS: usize = 1000;
    let positive = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / positive(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..STEPS {
        let m = step as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / positive(1.0 + term * d);
            c = positive(1.0 + term / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_are_those_of_scipy() {
        // scipy.stats.ttest_ind_from_stats(m1, s1, n1, m2, s2, n2).pvalue
        for ((m1, s1, n1), (m2, s2, n2), expected) in [
            ((10.0, 1.0, 5.0), (11.0, 1.0, 7.0), 0.118_470_571_992_209),
            ((10.0, 0.1, 30.0), (10.5, 0.2, 20.0), 1.124_232_933_436_725e-15),
            ((1.0, 3.0, 2.0), (1.0, 2.0, 2.0), 1.0),
        ] {
            let sample = |mean, deviation, size| Sample {
                mean,
                deviation,
                size,
            };
            let found = p_value(sample(m1, s1, n1), sample(m2, s2, n2));
            assert!(
                (found - expected).abs() <= expected * 1e-9,
                "{found:e} {expected:e}"
            );
        }
    }
}
