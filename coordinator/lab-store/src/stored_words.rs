//! The words that the store, the screen and JSON share: states of campaigns and cells, placements, and device states.

use std::{fmt, str::FromStr};

use regatta_types::UnknownWord;
use serde::{Deserialize, Serialize};

/// Declares an enum whose variants have one word each, for the store, for people and for programs.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $kind:literal {
        $(#[$first_doc:meta])* $first:ident = $first_word:literal,
        $($(#[$doc:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $(#[$first_doc])* #[serde(rename = $first_word)] $first,
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &[Self] = &[Self::$first, $(Self::$variant),*];

            /// Returns the word for it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    Self::$first => $first_word,
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                let found = Self::ALL.iter().find(|known| known.as_str().eq_ignore_ascii_case(text));
                found.copied().ok_or_else(|| UnknownWord {
                    kind: $kind,
                    text: text.to_owned(),
                    known: concat!($first_word, $(", ", $word),*),
                })
            }
        }
    };
}

words! {
    /// A user's request to a campaign.
    CampaignState, "state of a campaign" {
        /// Attempts begin.
        Running = "running",
        /// No new attempt begins; running ones may end.
        Paused = "paused",
        /// The campaign ends, and so do its attempts.
        Aborted = "aborted",
    }
}

words! {
    CellState, "state of a cell" {
        /// The cell needs an attempt, or has an open one.
        Waiting = "waiting",
        /// An attempt has a good run.
        Good = "good",
        /// The cell's last attempt failed, and no other begins by itself.
        Failed = "failed",
        /// The cell gets no attempt any more: the deadline has passed, or the campaign was aborted.
        Skipped = "skipped",
    }
}

words! {
    /// The choice of the device that takes a cell.
    Placement, "placement" {
        /// Any of the selected devices.
        Any = "any",
        /// Each of them is a separate cell.
        Each = "each",
        /// One of them, and the same for all repetitions.
        Same = "same",
    }
}

words! {
    /// A named device state.
    StatePreset, "state" {
        /// The highest clocks.
        MaxP = "MaxP",
        /// The published clocks for the most work per joule.
        MaxQ = "MaxQ",
        /// The state that the device has.
        AsIs = "as-is",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case_and_unknown_ones_name_the_known() {
        for &state in CellState::ALL {
            assert_eq!(state.to_string().to_uppercase().parse(), Ok(state));
        }
        let error = "some".parse::<Placement>().unwrap_err().to_string();
        assert!(error.contains("any, each, same"), "{error}");
    }
}
