//! The two clocks of a description, and the timestamps of logs.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::DateTime;
use rustix::time::{ClockId, clock_gettime};

/// The form of LoadGen's and PTDaemon's timestamps: `MM-DD-YYYY HH:MM:SS.mmm`.
const STAMP: &str = "%m-%d-%Y %H:%M:%S%.f";
const STAMP_LENGTH: usize = "MM-DD-YYYY HH:MM:SS.mmm".len();

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    time.unwrap_or_default().as_secs_f64()
}

/// Seconds of the monotonic clock.
pub(crate) fn monotonic() -> f64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the first timestamp in a line in seconds since 1970, read as UTC.
pub(crate) fn stamp_in(line: &str) -> Option<f64> {
    let stamp = line.as_bytes().windows(STAMP_LENGTH).find(|window| {
        let separators = [
            (2, b'-'),
            (5, b'-'),
            (10, b' '),
            (13, b':'),
            (16, b':'),
            (19, b'.'),
        ];
        let is_separator = |at: usize| separators.iter().find(|(place, _)| *place == at);
        window
            .iter()
            .enumerate()
            .all(|(at, byte)| match is_separator(at) {
                Some((_, separator)) => byte == separator,
                None => byte.is_ascii_digit(),
            })
    })?;
    let time = DateTime::strptime(STAMP, stamp).ok()?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    Some(time.as_millisecond() as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_utc() {
        let line = r#":::MLLOG {"key": "power_begin", "value": "08-03-2022 08:11:56.642", "time_ms": 12.5}"#;
        assert_eq!(stamp_in(line), Some(1_659_514_316.642));
        assert_eq!(stamp_in("08-03-2022 08:11:56.642"), Some(1_659_514_316.642));
        for wrong in [
            "",
            "08-03-2022",
            "13-03-2022 08:11:56.642",
            "08-03-2022 08:11:56,642",
        ] {
            assert_eq!(stamp_in(wrong), None, "{wrong}");
        }
    }
}
