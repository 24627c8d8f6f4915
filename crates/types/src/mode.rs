//! LoadGen's test modes and their spellings.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::UnknownWord;

/// The purpose of a LoadGen run (LoadGen `TestMode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Mode {
    /// Accuracy first, then performance, in one process.
    SubmissionRun,
    /// Every sample once; all responses are logged.
    AccuracyOnly,
    /// The measurement.
    PerformanceOnly,
    /// Server only: searches the highest rate that meets the latency bound.
    FindPeakPerformance,
}

impl Mode {
    /// Every mode, in LoadGen's order.
    pub const ALL: [Self; 4] = [
        Self::SubmissionRun,
        Self::AccuracyOnly,
        Self::PerformanceOnly,
        Self::FindPeakPerformance,
    ];

    /// Whether LoadGen issues a verdict (VALID or INVALID) in this mode. It issues none in AccuracyOnly.
    #[must_use]
    pub const fn has_verdict(self) -> bool {
        !matches!(self, Self::AccuracyOnly)
    }

    /// Returns LoadGen's spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SubmissionRun => "SubmissionRun",
            Self::AccuracyOnly => "AccuracyOnly",
            Self::PerformanceOnly => "PerformanceOnly",
            Self::FindPeakPerformance => "FindPeakPerformance",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = UnknownWord;

    /// Accepts LoadGen's spelling in any case, and the short `accuracy` and `performance` of the reference harnesses.
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text.to_ascii_lowercase().as_str() {
            "accuracy" => return Ok(Self::AccuracyOnly),
            "performance" => return Ok(Self::PerformanceOnly),
            _ => {}
        }
        Self::ALL
            .into_iter()
            .find(|m| m.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownWord {
                kind: "mode",
                text: text.to_owned(),
                known: "AccuracyOnly, PerformanceOnly, SubmissionRun, FindPeakPerformance",
            })
    }
}
