//! The mean of numbers, added in NumPy's order.

/// The number of values that NumPy reduces at a time.
const BUFFER: usize = 8192;
/// The largest number of values that are added without being halved first.
const BLOCK: usize = 128;

/// Returns the mean of numbers with the bits of `numpy.mean`.
pub(super) fn mean(numbers: &[f64]) -> f64 {
    numbers.chunks(BUFFER).map(sum).sum::<f64>() / numbers.len() as f64
}

fn sum(numbers: &[f64]) -> f64 {
    if numbers.len() < 8 {
        return numbers.iter().fold(-0.0, |sum, number| sum + number);
    }
    if numbers.len() > BLOCK {
        let half = numbers.len() / 2;
        let (first, second) = numbers.split_at(half - half % 8);
        return sum(first) + sum(second);
    }
    let (eights, rest) = numbers.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (index, eight) in eights.iter().enumerate() {
        for (sum, number) in sums.iter_mut().zip(eight) {
            *sum = if index == 0 { *number } else { *sum + number };
        }
    }
    let [a, b, c, d, e, f, g, h] = sums;
    let whole = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(whole, |sum, number| sum + number)
}
