//! Formats numbers as C++ does, because the official logs are printed by C++: the default of its streams, and fixed.

/// Formats a double like a C++ stream by default: six significant digits, like C's `%g`.
#[must_use]
pub fn general(value: f64) -> String {
    const DIGITS: i32 = 6;
    if !value.is_finite() || value == 0.0 {
        return unusual(value);
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return without_trailing_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.abs())
}

/// Formats a double with a fixed number of decimals, like C's `%.*f`.
#[must_use]
pub fn fixed(value: f64, decimals: usize) -> String {
    if value.is_finite() {
        format!("{value:.decimals$}")
    } else {
        unusual(value)
    }
}

/// Formats a double for detail logs: like a stream, but with Python's JSON words for infinities and NaN.
///
/// The official LoadGen prints `inf` and `-nan` there, on which every JSON reader fails.
#[must_use]
pub fn detail(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        general(value)
    }
}

fn unusual(value: f64) -> String {
    let word = if value.is_nan() {
        "nan"
    } else if value.is_infinite() {
        "inf"
    } else {
        "0"
    };
    if value.is_sign_negative() {
        format!("-{word}")
    } else {
        word.to_owned()
    }
}

fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

/// Appends bytes as upper-case hexadecimal digits.
pub(crate) fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 0x0F)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_prints_what_a_stream_prints() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (100_000.0, "100000"),
            (999_999.5, "1e+06"),
            (1_234_567.0, "1.23457e+06"),
            (0.0001, "0.0001"),
            (0.000_012_345, "1.2345e-05"),
            (646_245.4, "646245"),
            (18_181.818_181, "18181.8"),
            (1e100, "1e+100"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(general(value), text);
        }
    }

    #[test]
    fn detail_is_json_for_python() {
        assert_eq!(detail(0.9), "0.9");
        assert_eq!(detail(f64::NAN), "NaN");
        assert_eq!(detail(f64::NEG_INFINITY), "-Infinity");
        assert_eq!(fixed(99.9, 2), "99.90");
        assert_eq!(fixed(f64::INFINITY, 2), "inf");
    }
}
