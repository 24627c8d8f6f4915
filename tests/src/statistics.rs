//! Medians and bootstrap intervals for the benches.

use regatta_random::SplitMix64;

/// Returns the median; NaN for no values.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Returns the 95 % percentile bootstrap interval of `median(a) / median(b)`, with a fixed seed.
#[must_use]
pub fn interval_of_ratio(a: &[f64], b: &[f64]) -> (f64, f64) {
    const RESAMPLES: usize = 2000;
    let mut random = SplitMix64::new(0);
    let mut resample = |values: &[f64]| -> Vec<f64> {
        let draw = |_| values[usize::try_from(random.below(values.len() as u64)).unwrap_or(0)];
        (0..values.len()).map(draw).collect()
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| median(&resample(a)) / median(&resample(b)))
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    (ratios[RESAMPLES / 40], ratios[RESAMPLES - 1 - RESAMPLES / 40])
}

/// Formats a ratio of medians with its interval for tables.
#[must_use]
pub fn ratio(a: &[f64], b: &[f64]) -> String {
    let (low, high) = interval_of_ratio(a, b);
    format!("{:.3} ({low:.3} to {high:.3})", median(a) / median(b))
}
