//! The scenarios of a submission: LoadGen's four, and Interactive, a Server run with tighter bounds on token latencies.

use std::{fmt, str::FromStr};

use regatta_types::{Scenario, UnknownWord};
use serde::{Deserialize, Serialize};

/// A scenario, as a submission's directories name it (`inference_rules.adoc`, "Scenarios").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SubmittedScenario {
    /// LoadGen's SingleStream.
    SingleStream,
    /// LoadGen's MultiStream.
    MultiStream,
    /// LoadGen's Server.
    Server,
    /// Since v5.1, for language models in the datacenter: LoadGen runs Server.
    Interactive,
    /// LoadGen's Offline.
    Offline,
}

impl SubmittedScenario {
    /// All scenarios.
    pub const ALL: [Self; 5] = [
        Self::SingleStream,
        Self::MultiStream,
        Self::Server,
        Self::Interactive,
        Self::Offline,
    ];

    /// Returns the spelling in directories and round files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "Interactive",
            _ => self.run().as_str(),
        }
    }

    /// Returns the scenario that LoadGen runs for it.
    #[must_use]
    pub const fn run(self) -> Scenario {
        match self {
            Self::SingleStream => Scenario::SingleStream,
            Self::MultiStream => Scenario::MultiStream,
            Self::Server | Self::Interactive => Scenario::Server,
            Self::Offline => Scenario::Offline,
        }
    }
}

impl From<Scenario> for SubmittedScenario {
    fn from(scenario: Scenario) -> Self {
        match scenario {
            Scenario::SingleStream => Self::SingleStream,
            Scenario::MultiStream => Self::MultiStream,
            Scenario::Server => Self::Server,
            Scenario::Offline => Self::Offline,
        }
    }
}

impl PartialEq<Scenario> for SubmittedScenario {
    fn eq(&self, other: &Scenario) -> bool {
        *self == Self::from(*other)
    }
}

impl fmt::Display for SubmittedScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for SubmittedScenario {
    type Err = UnknownWord;

    /// Accepts any case, because published trees also use `interactive`.
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::ALL
            .into_iter()
            .find(|scenario| scenario.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownWord {
                kind: "scenario",
                text: text.to_owned(),
                known: "SingleStream, MultiStream, Server, Interactive, Offline",
            })
    }
}
