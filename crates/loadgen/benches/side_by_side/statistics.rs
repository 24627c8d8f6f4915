//! Medians and bootstrap intervals.

use regatta_loadgen::rng::{Mt19937, RngAbi};

/// The middle value.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The 95 % percentile bootstrap interval of `median(a) / median(b)`, from a fixed seed.
pub(crate) fn interval_of_ratio(a: &[f64], b: &[f64]) -> (f64, f64) {
    const RESAMPLES: usize = 2000;
    let mut generator = Mt19937::new(1);
    let mut resample = |values: &[f64]| -> Vec<f64> {
        let draw = |_| {
            let index = RngAbi::default().uniform_below(&mut generator, values.len() as u64);
            values[usize::try_from(index).unwrap_or(0)]
        };
        (0..values.len()).map(draw).collect()
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| median(&resample(a)) / median(&resample(b)))
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    (ratios[RESAMPLES / 40], ratios[RESAMPLES - 1 - RESAMPLES / 40])
}
