//! Formats single values: bytes, times, accuracies, the cost of the agent.

use jiff::Timestamp;
use regatta_types::documents::WindowCost;

use super::time_zone::zoned;

/// Formats bytes in the unit with one to three digits before the point.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Formats a time of the store, to the second.
pub fn time(stored: &str) -> String {
    match stored.parse() {
        Ok(at) => zoned(at).strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
        Err(_) => stored.to_owned(),
    }
}

/// Formats a time of the store as a day.
pub fn day(stored: &str) -> String {
    match stored.parse::<Timestamp>() {
        Ok(at) => zoned(at).date().to_string(),
        Err(_) => stored.to_owned(),
    }
}

/// Returns the age of a time of the store in seconds.
pub fn age(stored: &str, now: Timestamp) -> Option<i64> {
    let then: Timestamp = stored.parse().ok()?;
    Some(now.duration_since(then).as_secs().max(0))
}

/// Formats the age of a time of the store.
pub fn ago(stored: &str, now: Timestamp) -> String {
    match age(stored, now) {
        None => format!("at {stored}"),
        Some(seconds @ ..120) => format!("{seconds} s ago"),
        Some(seconds @ ..7_200) => format!("{} min ago", seconds / 60),
        Some(seconds @ ..172_800) => format!("{} h ago", seconds / 3_600),
        Some(seconds) => format!("{} days ago", seconds / 86_400),
    }
}

/// Formats the agent's resource use while LoadGen ran.
pub fn window(cost: &WindowCost) -> String {
    let mut parts = vec![
        format!("{} sent", bytes(cost.bytes_sent)),
        format!("{:.1} ms of processor time", cost.daemon_cpu_ns as f64 / 1e6),
    ];
    parts.extend(cost.daemon_wakeups.map(|times| format!("{times} wake-ups")));
    let off = cost.daemon_kept_off_cpu;
    parts.extend(off.map(|cpu| format!("kept off processor {cpu}")));
    parts.join(", ")
}

/// Formats two percentages with as many decimals as it takes to distinguish them, two at least. Equal ones have two.
pub(super) fn distinct(one: f64, other: f64) -> [String; 2] {
    distinct_from(2, one, other)
}

/// Formats two numbers as [`distinct`] does, with at least this many decimals.
pub(super) fn distinct_from(least: usize, one: f64, other: f64) -> [String; 2] {
    let formatted = |decimals: usize| [one, other].map(|value| format!("{value:.decimals$}"));
    (least..least + 4)
        .map(formatted)
        .find(|[one, other]| one != other)
        .unwrap_or_else(|| formatted(if one == other { least } else { least + 4 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_to_the_second() {
        assert_eq!(time("2026-11-21T09:38:41.815372742Z"), "2026-11-21 09:38:41 UTC");
        assert_eq!(time("2026-11-21T09:38:41Z"), "2026-11-21 09:38:41 UTC");
    }

    #[test]
    fn bytes_keep_three_digits() {
        let printed: Vec<_> = [0, 999, 1000, 65_536, 999_500, 2_345_678_901]
            .into_iter()
            .map(bytes)
            .collect();
        assert_eq!(printed, ["0 B", "999 B", "1.0 kB", "65.5 kB", "1.0 MB", "2.3 GB"]);
    }
}
