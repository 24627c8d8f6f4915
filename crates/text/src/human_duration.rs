//! Durations in the form that users write: an integer with its unit. This module does not know their purpose.

use std::{fmt, num::NonZeroU64, str::FromStr};

/// A duration in whole milliseconds, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanDuration(NonZeroU64);

/// The error for a text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a duration; hint: write an integer above 0 with its unit, such as 500ms, 3s, 10m, 1h or 7d"
)]
pub struct InvalidDuration(String);

impl HumanDuration {
    /// Returns the duration in milliseconds.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.0.get()
    }
}

impl FromStr for HumanDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let in_millis: Option<u64> = match unit {
            "ms" => Some(1),
            "s" => Some(1_000),
            "m" | "min" => Some(60_000),
            "h" => Some(3_600_000),
            "d" => Some(86_400_000),
            _ => None,
        };
        in_millis
            .and_then(|factor| number.parse::<u64>().ok()?.checked_mul(factor))
            .and_then(NonZeroU64::new)
            .map(Self)
            .ok_or_else(|| InvalidDuration(text.to_owned()))
    }
}

impl fmt::Display for HumanDuration {
    /// Formats the duration in the largest unit up to hours of which it is an integer multiple.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.millis();
        for (factor, unit) in [(3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
            if millis.is_multiple_of(factor) {
                return write!(f, "{}{unit}", millis / factor);
            }
        }
        write!(f, "{millis}ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_unit_and_prints_the_largest_whole_one() {
        for (text, millis, printed) in [
            ("500ms", 500, "500ms"),
            ("3s", 3_000, "3s"),
            ("3000ms", 3_000, "3s"),
            ("90s", 90_000, "90s"),
            ("10m", 600_000, "10m"),
            ("10min", 600_000, "10m"),
            ("1h", 3_600_000, "1h"),
            ("7d", 604_800_000, "168h"),
        ] {
            let length: HumanDuration = text.parse().unwrap();
            assert_eq!(
                (length.millis(), length.to_string().as_str()),
                (millis, printed),
                "{text}"
            );
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "3",
            "s",
            "0s",
            "-1s",
            "1.5s",
            "3 s",
            "3w",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert!(text.parse::<HumanDuration>().is_err(), "{text}");
        }
    }
}
