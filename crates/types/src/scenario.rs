//! The four LoadGen scenarios and their spellings.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::UnknownWord;

/// The pattern in which LoadGen sends queries (`inference_rules.adoc`, "Scenarios").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scenario {
    /// One sample per query; each query follows the completion of the previous one. The metric is a latency percentile.
    SingleStream,
    /// Eight contiguous samples per query, otherwise like SingleStream.
    MultiStream,
    /// Queries of one sample arrive as a Poisson process. The metric is the rate that meets the latency bound.
    Server,
    /// All samples in one query; the metric is throughput.
    Offline,
}

impl Scenario {
    /// Every scenario, in LoadGen's order.
    pub const ALL: [Self; 4] = [Self::SingleStream, Self::MultiStream, Self::Server, Self::Offline];

    /// Returns LoadGen's spelling, which conf files, logs and directory names use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SingleStream => "SingleStream",
            Self::MultiStream => "MultiStream",
            Self::Server => "Server",
            Self::Offline => "Offline",
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Scenario {
    type Err = UnknownWord;

    /// Accepts LoadGen's spelling in any case, because published trees also use `singlestream`.
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::ALL
            .into_iter()
            .find(|s| s.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownWord {
                kind: "scenario",
                text: text.to_owned(),
                known: "SingleStream, MultiStream, Server, Offline",
            })
    }
}
