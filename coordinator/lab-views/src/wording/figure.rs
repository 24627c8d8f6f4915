//! Formats figures and durations. Programs get every digit in JSON.

use regatta_text::significant;

use regatta_types::documents::Metric;

/// Formats LoadGen's value and unit.
pub fn value(metric: &Metric) -> String {
    regatta_text::figure(metric.value, &metric.unit)
}

/// Formats a duration: `12.3 s`, `604 s`, `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
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
    fn durations_are_short() {
        let printed = [0.05, 3.004, 59.7, 604.2, 7_530.0].map(duration);
        assert_eq!(printed, ["0.0500 s", "3.00 s", "60 s", "604 s", "2 h 5 min"]);
    }
}
