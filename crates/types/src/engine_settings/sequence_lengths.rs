//! The lengths at which an engine computes sequences, as text. Which length a sample takes is the agent's part.

use std::{fmt, str::FromStr};

use super::value::TextSetting;

/// Lengths in tokens, ascending, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceLengths(Vec<usize>);

impl SequenceLengths {
    /// The most lengths. An engine holds memory for each of them.
    const MAX_COUNT: usize = 16;
    /// The longest sequence in tokens.
    const MAX_LENGTH: usize = 1 << 20;

    /// Returns the lengths in tokens, ascending.
    #[must_use]
    pub fn tokens(&self) -> &[usize] {
        &self.0
    }
}

/// Formats as `128,384`.
impl fmt::Display for SequenceLengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&texts.join(","))
    }
}

impl FromStr for SequenceLengths {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.trim().parse().ok();
        let numbers: Option<Vec<usize>> = text.split(',').map(number).collect();
        let are_valid = |lengths: &[usize]| {
            lengths.len() <= Self::MAX_COUNT
                && lengths.is_sorted_by(|shorter, longer| shorter < longer)
                && lengths
                    .iter()
                    .all(|length| (1..=Self::MAX_LENGTH).contains(length))
        };
        numbers
            .filter(|lengths| are_valid(lengths))
            .map(Self)
            .ok_or("write up to 16 ascending lengths in tokens with commas between them, such as 128,192,384")
    }
}

impl TextSetting for SequenceLengths {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_ascend() {
        for (text, shown) in [("128, 192,384", "128,192,384"), ("64", "64")] {
            let lengths: SequenceLengths = text.parse().unwrap();
            assert_eq!(lengths.to_string(), shown);
        }
        for wrong in ["", "384,128", "128,128", "0,128", "128,", "a", "1048577"] {
            assert!(wrong.parse::<SequenceLengths>().is_err(), "{wrong}");
        }
    }
}
