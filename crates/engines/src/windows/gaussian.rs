//! The weights of a window's voxels, as the reference's `inference_utils.py` computes them with SciPy and NumPy.

/// Returns the weights of a cube of `side` voxels, whose largest is 1. `deviation` is a fraction of the side.
pub(super) fn weights(side: usize, deviation: f64) -> Vec<f32> {
    let spread = 2.0 * (deviation * side as f64).powi(2);
    let line: Vec<f64> = (0..side)
        .map(|place| {
            let distance = place as f64 - (side as f64 - 1.0) / 2.0;
            (-distance.powi(2) / spread).exp()
        })
        .collect();
    let mut cube = Vec::with_capacity(side.pow(3));
    for depth in &line {
        for row in &line {
            cube.extend(line.iter().map(|column| (depth * row * column).cbrt()));
        }
    }
    let largest = cube.iter().copied().fold(0.0, f64::max);
    cube.into_iter().map(|weight| (weight / largest) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_fall_from_the_centre_to_the_corners_alike_in_all_directions() {
        let cube = weights(8, 0.125);
        let at = |depth: usize, row: usize, column: usize| cube[(depth * 8 + row) * 8 + column];
        assert!((at(3, 4, 3) - 1.0).abs() < f32::EPSILON && at(0, 0, 0) > 0.0);
        assert!((at(0, 3, 5) - at(5, 0, 3)).abs() < f32::EPSILON);
        // The cube root makes the exponent a third of that of the sum of squares.
        let expected = (-(3.0 * 3.5_f64.powi(2) - 3.0 * 0.25) / 2.0 / 3.0).exp();
        assert!(
            (f64::from(at(0, 0, 0)) - expected).abs() < 1e-6,
            "{} {expected}",
            at(0, 0, 0)
        );
    }
}
