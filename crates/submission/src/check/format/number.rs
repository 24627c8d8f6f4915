//! Numbers for people. Programs get all digits.

/// Digits that a metric computed from samples is worth.
const SIGNIFICANT: i32 = 6;

/// A result as its log gives it; power, which is computed here, to six digits.
pub(super) fn shown(value: f64, computed: bool) -> String {
    if computed {
        significant(value)
    } else {
        value.to_string()
    }
}

/// The value to six significant digits.
pub(super) fn significant(value: f64) -> String {
    let whole = value.abs().log10().floor();
    if !whole.is_finite() {
        return value.to_string();
    }
    let places = (SIGNIFICANT - 1 - whole as i32).clamp(0, 12);
    format!("{value:.*}", places.unsigned_abs() as usize)
}
