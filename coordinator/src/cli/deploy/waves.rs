//! The waves of an upgrade and the failures that stop it, as words and numbers. It knows no devices.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A text that is neither a count nor a share.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is neither a number of devices such as 3 nor a share from 1% to 100%")]
pub(super) struct InvalidPortion(String);

/// A number of devices, or a share of a group of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) enum Portion {
    /// This many.
    Devices(usize),
    /// This many of a hundred.
    Percent(usize),
}

impl Portion {
    /// Returns the number of devices in a group of `total`. A share is rounded up, so it is never none of some.
    const fn of(self, total: usize) -> usize {
        match self {
            Self::Devices(count) => count,
            Self::Percent(share) => total.saturating_mul(share).div_ceil(100),
        }
    }
}

impl FromStr for Portion {
    type Err = InvalidPortion;

    fn from_str(text: &str) -> Result<Self, InvalidPortion> {
        let (digits, share) = match text.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        let number = digits.parse().ok().filter(|number| *number > 0);
        match (number, share) {
            (Some(number), false) => Ok(Self::Devices(number)),
            (Some(number), true) if number <= 100 => Ok(Self::Percent(number)),
            _ => Err(InvalidPortion(text.to_owned())),
        }
    }
}

impl fmt::Display for Portion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Devices(count) => write!(f, "{count}"),
            Self::Percent(share) => write!(f, "{share}%"),
        }
    }
}

impl TryFrom<String> for Portion {
    type Error = InvalidPortion;

    fn try_from(text: String) -> Result<Self, InvalidPortion> {
        text.parse()
    }
}

impl From<Portion> for String {
    fn from(portion: Portion) -> Self {
        portion.to_string()
    }
}

/// Returns the number of devices in each wave. Each element of `waves` is how many of `total` are done after it; a last wave has the rest.
pub(super) fn sizes(waves: &[Portion], total: usize) -> Vec<usize> {
    let mut done = 0;
    let mut sizes = Vec::new();
    for until in waves.iter().map(|wave| wave.of(total)).chain([total]) {
        let until = until.min(total);
        if until > done {
            sizes.push(until - done);
            done = until;
        }
    }
    sizes
}

/// Failures so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Failures {
    /// The failures in all waves.
    pub(super) in_all: usize,
    /// The failures in the present wave.
    pub(super) in_wave: usize,
}

impl Failures {
    /// Returns whether no further device may be begun: `most` is a number of failures in all waves, or a share of the wave's devices.
    pub(super) const fn stop(self, most: Portion, wave: usize) -> bool {
        match most {
            Portion::Devices(count) => self.in_all >= count,
            Portion::Percent(_) => self.in_wave > 0 && self.in_wave >= most.of(wave),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn portions(text: &str) -> Vec<Portion> {
        text.split(',').map(|word| word.parse().unwrap()).collect()
    }

    #[test]
    fn waves_grow_and_the_last_one_has_the_rest() {
        for (waves, total, expected) in [
            ("1", 1, vec![1]),
            ("1", 40, vec![1, 39]),
            ("1,10%,100%", 40, vec![1, 3, 36]),
            ("1,10%", 40, vec![1, 3, 36]),
            ("1,10%,100%", 3, vec![1, 2]),
            ("5%,50%", 3, vec![1, 1, 1]),
            ("8,2,100%", 10, vec![8, 2]),
            ("100%", 1_000, vec![1_000]),
        ] {
            assert_eq!(sizes(&portions(waves), total), expected, "{waves} of {total}");
        }
    }

    #[test]
    fn words_that_are_no_portion_are_refused() {
        for text in ["", "0", "0%", "101%", "-1", "1.5%", "ten", "%"] {
            assert!(text.parse::<Portion>().is_err(), "{text}");
        }
        assert_eq!(
            portions("3,25%")
                .iter()
                .map(Portion::to_string)
                .collect::<Vec<_>>(),
            ["3", "25%"]
        );
    }

    #[test]
    fn a_count_stops_over_all_waves_and_a_share_within_one() {
        let failures = |in_all, in_wave| Failures { in_all, in_wave };
        assert!(!failures(1, 1).stop(Portion::Devices(2), 10));
        assert!(failures(2, 0).stop(Portion::Devices(2), 10));
        assert!(!failures(9, 4).stop(Portion::Percent(50), 10));
        assert!(failures(9, 5).stop(Portion::Percent(50), 10));
        assert!(
            failures(1, 1).stop(Portion::Percent(10), 1),
            "the first board goes alone"
        );
        assert!(!failures(3, 0).stop(Portion::Percent(1), 1));
    }

    proptest! {
        #[test]
        fn every_device_is_in_one_wave(
            waves in prop::collection::vec(prop_oneof![
                (1_usize..50).prop_map(Portion::Devices),
                (1_usize..=100).prop_map(Portion::Percent)
            ], 0..6),
            total in 0_usize..2_000,
        ) {
            let sizes = sizes(&waves, total);
            prop_assert_eq!(sizes.iter().sum::<usize>(), total);
            prop_assert!(sizes.iter().all(|size| *size > 0));
        }
    }
}
