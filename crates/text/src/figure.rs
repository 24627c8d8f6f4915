//! LoadGen's figures with a unit that suits their size. Programs get every digit in JSON.

use crate::significant;

/// The significant digits of a figure.
const DIGITS: i32 = 4;

/// Formats a value with its unit. Latencies (`ns`) are printed in milliseconds, or in seconds from ten seconds on; large rates in millions.
#[must_use]
pub fn figure(value: f64, unit: &str) -> String {
    let (value, unit) = match unit {
        "ns" if value >= 1e10 => (value / 1e9, "s".to_owned()),
        "ns" => (value / 1e6, "ms".to_owned()),
        unit if value >= 1e6 => (value / 1e6, format!("M {unit}")),
        unit => (value, unit.to_owned()),
    };
    format!("{} {unit}", significant(value, DIGITS))
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits() {
        for (value, unit, printed) in [
            (4_473_123.0, "ns", "4.473 ms"),
            (125_123.0, "ns", "0.1251 ms"),
            (12_345_678_901.0, "ns", "12.35 s"),
            (9_999_960.0, "ns", "10.00 ms"),
            (19_614.49, "samples/s", "19610 samples/s"),
            (856.23, "samples/s", "856.2 samples/s"),
            (62_664_400.0, "samples/s", "62.66 M samples/s"),
            (0.0, "queries/s", "0 queries/s"),
        ] {
            assert_eq!(figure(value, unit), printed);
        }
    }
}
