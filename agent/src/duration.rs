//! A run's length as users write it: a number with a unit. Says nothing about what LoadGen makes of it.

use std::{fmt, num::NonZeroU64, str::FromStr};

/// A run's length in whole milliseconds, more than none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunDuration(NonZeroU64);

/// What was given is no run length.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no run length: write a whole number above 0 with its unit, such as 500ms, 3s, 10m or 1h")]
pub(crate) struct InvalidDuration(String);

impl RunDuration {
    /// The length in milliseconds.
    pub(crate) const fn millis(self) -> u64 {
        self.0.get()
    }
}

impl FromStr for RunDuration {
    type Err = InvalidDuration;

    fn from_str(given: &str) -> Result<Self, InvalidDuration> {
        let digits = given.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = given.split_at(digits);
        let in_millis: Option<u64> = match unit {
            "ms" => Some(1),
            "s" => Some(1_000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            _ => None,
        };
        in_millis
            .and_then(|factor| number.parse::<u64>().ok()?.checked_mul(factor))
            .and_then(NonZeroU64::new)
            .map(Self)
            .ok_or_else(|| InvalidDuration(given.to_owned()))
    }
}

impl fmt::Display for RunDuration {
    /// In the largest unit that it is a whole number of.
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
        for (given, millis, printed) in [
            ("500ms", 500, "500ms"),
            ("3s", 3_000, "3s"),
            ("3000ms", 3_000, "3s"),
            ("90s", 90_000, "90s"),
            ("10m", 600_000, "10m"),
            ("1h", 3_600_000, "1h"),
        ] {
            let length: RunDuration = given.parse().unwrap();
            assert_eq!(
                (length.millis(), length.to_string().as_str()),
                (millis, printed),
                "{given}"
            );
        }
    }

    #[test]
    fn refuses_what_is_no_length() {
        for given in [
            "",
            "3",
            "s",
            "0s",
            "-1s",
            "1.5s",
            "3 s",
            "3d",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert!(given.parse::<RunDuration>().is_err(), "{given}");
        }
    }
}
