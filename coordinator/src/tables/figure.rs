//! Formats figures with four significant digits, and durations. Programs get every digit in JSON.

use regatta_text::significant;

use crate::store::Metric;

/// The significant digits of a figure.
const DIGITS: i32 = 4;

/// Formats LoadGen's value and unit. Latencies are in milliseconds, or in seconds from ten seconds on.
pub(crate) fn value(metric: &Metric) -> String {
    let (value, unit) = match metric.unit.as_str() {
        "ns" if metric.value >= 1e10 => (metric.value / 1e9, "s".to_owned()),
        "ns" => (metric.value / 1e6, "ms".to_owned()),
        unit if metric.value >= 1e6 => (metric.value / 1e6, format!("M {unit}")),
        unit => (metric.value, unit.to_owned()),
    };
    format!("{} {unit}", significant(value, DIGITS))
        .trim_end()
        .to_owned()
}

/// Formats a duration: `12.3 s`, `604 s`, `2 h 5 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..60 => format!("{} s", significant(seconds, 3)),
        60..3600 => format!("{whole} s"),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits() {
        for (figure, unit, printed) in [
            (4_473_123.0, "ns", "4.473 ms"),
            (125_123.0, "ns", "0.1251 ms"),
            (12_345_678_901.0, "ns", "12.35 s"),
            (9_999_960.0, "ns", "10.00 ms"),
            (19_614.49, "samples/s", "19610 samples/s"),
            (856.23, "samples/s", "856.2 samples/s"),
            (62_664_400.0, "samples/s", "62.66 M samples/s"),
            (0.0, "queries/s", "0 queries/s"),
        ] {
            let metric = Metric {
                name: String::new(),
                value: figure,
                unit: unit.to_owned(),
            };
            assert_eq!(value(&metric), printed);
        }
    }

    #[test]
    fn durations_are_short() {
        let printed = [0.05, 3.004, 59.7, 604.2, 7_530.0].map(duration);
        assert_eq!(printed, ["0.0500 s", "3.00 s", "60 s", "604 s", "2 h 5 min"]);
    }
}
