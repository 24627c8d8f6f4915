//! Numeric helpers of engines: wider integers, and the class with the largest score. They do not know tensors or
//! layouts.

/// Converts 32-bit integers to 64-bit integers.
pub(super) fn widen(narrow: &[u8], wide: &mut [u8]) {
    for (to, from) in wide.as_chunks_mut().0.iter_mut().zip(narrow.as_chunks().0) {
        *to = i64::from(i32::from_le_bytes(*from)).to_le_bytes();
    }
}

/// Returns the position of the first of the largest values. NaN is never the largest.
pub(super) fn largest(values: impl Iterator<Item = f64>) -> i32 {
    let mut best = (0, f64::NEG_INFINITY);
    for (position, value) in (0..).zip(values) {
        if value > best.1 {
            best = (position, value);
        }
    }
    // Overflow cannot occur: no model in the field has more than 2^31 classes.
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equals_is_the_largest_and_what_is_no_number_is_passed_over() {
        assert_eq!(largest([1.0, 3.0, 3.0].into_iter()), 1);
        assert_eq!(largest([f64::NAN, -2.0, -1.0].into_iter()), 2);
        assert_eq!(largest([f64::NEG_INFINITY, f64::NEG_INFINITY].into_iter()), 0);
    }
}
