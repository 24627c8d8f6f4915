//! Lengths of runs as users write them: `500ms`, `3s`, `10m`, `1h`.

use std::str::FromStr;

/// A length that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a length such as 500ms, 3s, 10m or 1h")]
pub(crate) struct LengthError {
    given: String,
}

/// A length in milliseconds, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Length(pub(crate) u64);

impl FromStr for Length {
    type Err = LengthError;

    fn from_str(given: &str) -> Result<Self, LengthError> {
        let wrong = || LengthError {
            given: given.to_owned(),
        };
        let digits = given.len() - given.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = given.split_at(digits);
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let milliseconds = number
            .checked_mul(factor)
            .filter(|&milliseconds| milliseconds > 0)
            .ok_or_else(wrong)?;
        Ok(Self(milliseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lengths_and_refuses_the_rest() {
        for (text, milliseconds) in [("500ms", 500), ("3s", 3_000), ("10m", 600_000), ("1h", 3_600_000)] {
            assert_eq!(text.parse(), Ok(Length(milliseconds)));
        }
        for text in [
            "",
            "3",
            "s",
            "0s",
            "-1s",
            "1.5s",
            "3 s",
            "99999999999999999999h",
            "9999999999999999999h",
        ] {
            assert!(text.parse::<Length>().is_err(), "{text}");
        }
    }
}
