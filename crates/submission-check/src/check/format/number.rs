//! Formats numbers for people. The JSON and CSV reports contain all digits.

/// The number of significant digits of a metric that is computed from samples.
const SIGNIFICANT: i32 = 6;

/// Formats a result as its log has it. Power, which is computed here, has six significant digits.
pub(super) fn shown(value: f64, computed: bool) -> String {
    if computed {
        significant(value)
    } else {
        value.to_string()
    }
}

/// Formats the value with six significant digits.
pub(super) fn significant(value: f64) -> String {
    let whole = value.abs().log10().floor();
    if !whole.is_finite() {
        return value.to_string();
    }
    let places = (SIGNIFICANT - 1 - whole as i32).clamp(0, 12);
    format!("{value:.*}", places.unsigned_abs() as usize)
}
