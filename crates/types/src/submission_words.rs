//! Divisions and categories of a submission.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::UnknownWord;

/// The division of a submission (`submission_rules.adoc`, "Divisions").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Division {
    /// Reference model, comparable results.
    Closed,
    /// Any model.
    Open,
    /// Closed, with the queries sent over a network.
    Network,
}

/// The category of a system (`system_type` in the system description).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Edge devices.
    Edge,
    /// Datacenter servers.
    Datacenter,
}

impl Division {
    /// Returns the directory name of the division.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::Network => "network",
        }
    }
}

impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Division {
    type Err = UnknownWord;

    /// Parses a name in any case. Directory names must be spelled as [`Division::as_str`] returns them.
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        [Self::Closed, Self::Open, Self::Network]
            .into_iter()
            .find(|division| division.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownWord {
                kind: "division",
                text: text.to_owned(),
                known: "closed, open, network",
            })
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Edge => "edge",
            Self::Datacenter => "datacenter",
        })
    }
}
