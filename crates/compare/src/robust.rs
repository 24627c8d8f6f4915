//! Median and median absolute deviation: location and spread that single outliers do not move.

/// Scales a median absolute deviation to the standard deviation of a normal distribution.
const NORMAL: f64 = 1.482_602_218_505_602;

/// Returns the median; NaN for no values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    median_of_sorted(&sorted(values))
}

/// Returns the median absolute deviation from the median; NaN for no values.
#[must_use]
pub fn mad(values: &[f64]) -> f64 {
    let middle = median(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&deviations)
}

/// Returns the standard deviation of a normal distribution with the same median absolute deviation. Corrected for few values by
/// `n / (n - 0.8)` (Croux and Rousseeuw 1992).
pub(crate) fn normal_deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    mad(values) * NORMAL * n / (n - 0.8)
}

pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_deviation_ignore_one_outlier() {
        let values = [1.0, 2.0, 3.0, 4.0, 1e9];
        assert_eq!((median(&values), mad(&values)), (3.0, 1.0));
        assert_eq!(median(&[1.0, 2.0]), 1.5);
        assert!(median(&[]).is_nan());
    }
}
