//! What engines that compute do with numbers: integers made wider, and the class out of scores. Knows no tensor and no layout.

/// 32-bit integers as 64-bit ones.
pub(super) fn widen(narrow: &[u8], wide: &mut [u8]) {
    for (to, from) in wide.as_chunks_mut().0.iter_mut().zip(narrow.as_chunks().0) {
        *to = i64::from(i32::from_le_bytes(*from)).to_le_bytes();
    }
}

/// The position of the first of the largest values; what is no number is never the largest.
pub(super) fn largest(values: impl Iterator<Item = f64>) -> i32 {
    let mut best = (0, f64::NEG_INFINITY);
    for (position, value) in (0..).zip(values) {
        if value > best.1 {
            best = (position, value);
        }
    }
    // More than 2^31 classes cannot be: the output would not have fitted a tensor of any model in the field.
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
