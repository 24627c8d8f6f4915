//! The part of a run's spec that names the system file whose values the run uses. The `config` crate chooses them.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::UnknownWord;

/// The system's values that a run uses, as part of its spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemUse {
    /// The file: the name of a built-in one, the path that the user named, or `generic`.
    pub file: String,
    /// SHA-256 of the file's text, hexadecimal; `None` for the generic rule.
    pub sha256: Option<String>,
    /// The system's name in the file.
    pub system: String,
    /// The power setting that the values are for.
    pub power: PowerSetting,
    /// The values' source, as text.
    pub source: String,
    /// Whether the values are derived.
    pub derived: bool,
    /// The settings from the file. The user set the others, or left them to the engine.
    pub settings: Vec<String>,
    /// The lines of `user.conf` from the file. The device's own rates and the user's lines override them.
    pub conf: Vec<String>,
}

/// The power settings for which results are published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PowerSetting {
    /// The highest clocks.
    #[default]
    MaxP,
    /// Clocks for the most work per joule.
    MaxQ,
}

impl PowerSetting {
    /// Returns the spelling in files and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxP => "MaxP",
            Self::MaxQ => "MaxQ",
        }
    }
}

impl FromStr for PowerSetting {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        [Self::MaxP, Self::MaxQ]
            .into_iter()
            .find(|power| power.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownWord {
                kind: "power setting",
                text: text.to_owned(),
                known: "MaxP, MaxQ",
            })
    }
}
