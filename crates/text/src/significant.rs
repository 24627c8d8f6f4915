//! Numbers with as many digits as a reader needs. Programs get every digit in JSON.

/// Formats a number with `digits` significant digits. Other digits before the point become zeros.
#[must_use]
pub fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let decimals = |value: f64| digits - 1 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(decimals(value).abs());
    let rounded = if decimals(value) < 0 {
        (value / scale).round() * scale
    } else {
        (value * scale).round() / scale
    };
    // Rounding may have added a digit before the point.
    let decimals = usize::try_from(decimals(rounded)).unwrap_or(0);
    format!("{rounded:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_may_add_a_digit() {
        let printed = [0.125_123, 9.999_96, 856.23, 19_614.49, 0.0].map(|value| significant(value, 4));
        assert_eq!(printed, ["0.1251", "10.00", "856.2", "19610", "0"]);
    }
}
