//! `session.json`: the coordinator's record of a power session, beside the session's files. A session that failed has one, too.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{EndCause, MeterSettings, StateSpec};
use crate::{DeviceId, RunId, Scenario, UnknownWord};

/// The record of a power session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerSessionRecord {
    /// Schema number of this document.
    pub schema: u16,
    /// The session's id.
    pub session: String,
    /// The meter, as it was then.
    pub meter: SessionMeter,
    /// The device that was measured.
    pub device: DeviceId,
    /// The machine of the power client, in words.
    pub machine: String,
    /// The benchmark.
    pub benchmark: String,
    /// The scenario.
    pub scenario: Scenario,
    /// The round whose rules apply.
    pub round: String,
    /// The requested device state; `None` left the device as it was.
    #[serde(default)]
    pub state: Option<StateSpec>,
    /// Whether PTDaemon was a simulated one. `None` when it has not reported what it is.
    pub simulated: Option<bool>,
    /// Whether Regatta's own programs made it.
    pub informative: bool,
    /// The reasons why its runs cannot be submitted.
    pub obstacles: Vec<String>,
    /// The steps, in order.
    pub steps: Vec<SessionStep>,
    /// What was observed beside it.
    pub observations: Vec<SessionObservation>,
    /// The runs that were requested.
    pub runs: SessionRuns,
    /// Ranging runs that were INVALID by a guessed rate, and were repeated in the session.
    pub repeated: Vec<RunId>,
    /// The directory of the files on the coordinator.
    pub directory: String,
    /// The directory of the files on `machine`, when they could not be fetched.
    #[serde(default)]
    pub unfetched: Option<String>,
    /// The later transfer of such files.
    #[serde(default)]
    pub fetched: Option<LateTransfer>,
    /// SHA-256 of every file, by its path below `directory`.
    pub sha256: BTreeMap<String, String>,
    /// The verdict on a complete session.
    pub verdict: Option<PowerVerdict>,
    /// The checks of the official checker. `None` when it did not judge the session.
    #[serde(default)]
    pub official_checks: Option<Vec<OfficialCheck>>,
    /// The official verdict in a few words.
    #[serde(default)]
    pub official_summary: Option<String>,
    /// The findings of Regatta's check.
    #[serde(default)]
    pub findings: Vec<String>,
    /// The energy of the testing run.
    pub energy: Option<SessionEnergy>,
    /// Why there is no verdict.
    pub failure: Option<RecordedFailure>,
    /// The seconds of the testing workload beside LoadGen's measured window: the request, loading, delivery and the logs.
    #[serde(default)]
    pub seconds_beside_window: Option<f64>,
    /// The power of the board's own rails in that window.
    #[serde(default)]
    pub rails: Option<SessionRails>,
}
super::document!(PowerSessionRecord, "power session's record", 1);

impl PowerSessionRecord {
    /// Returns whether the checkers accept the session, also as a rehearsal or an informative one.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.verdict.is_some_and(|verdict| verdict != PowerVerdict::Fail)
    }

    /// Returns the reason why there is no verdict.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.failure.as_ref().map(|failure| failure.reason.as_str())
    }
}

/// A meter and its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMeter {
    /// The name that the user gave it.
    pub name: String,
    /// Its connection and use.
    pub settings: MeterSettings,
}

/// A step of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionStep {
    /// The step, in words.
    pub step: String,
    /// Its length in seconds. `None` of a step that did not end.
    pub seconds: Option<f64>,
}

/// An observation during a session, such as a clock's step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionObservation {
    /// The time in UTC.
    pub time: String,
    /// The observation, a sentence.
    pub text: String,
}

/// The two runs of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRuns {
    /// The run from which the meter's ranges follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranging: Option<RunId>,
    /// The run that is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub testing: Option<RunId>,
}

/// The transfer of a session's files that came after its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateTransfer {
    /// The time in UTC.
    pub time: String,
    /// Why the session had failed before.
    pub failed_before: Option<RecordedFailure>,
}

/// Why a session has no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFailure {
    /// Whose failure it is.
    pub cause: EndCause,
    /// The error chain as a sentence, and the hint on separate lines.
    pub reason: String,
}

/// One line of the official checker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfficialCheck {
    /// The checker's name for it.
    pub name: String,
    /// Whether the session passed.
    pub passed: bool,
}

/// The mean power of a board's rails while LoadGen ran. Informative.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRails {
    /// Watts.
    pub watts: f64,
    /// The rails.
    pub rails: Vec<String>,
    /// The meter's mean divided by that of the rails.
    pub meter_over_rails: f64,
}

/// Power and energy between `power_begin` and `power_end` of the testing run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SessionEnergy {
    /// The mean of the positive samples in watts: the metric of Offline, Server and Interactive.
    pub watts: f64,
    /// The length of the window in seconds.
    pub seconds: f64,
    /// Watts times seconds.
    pub joules: f64,
    /// The metric of SingleStream and MultiStream in millijoules per query. `None` for other scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millijoules_per_query: Option<f64>,
    /// Samples that the system under test answered per joule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_joule: Option<f64>,
}

/// The verdict on a complete power session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerVerdict {
    /// Both checkers accept it.
    Pass,
    /// Both checkers accept it, but it is not a measurement, or its runs cannot be submitted.
    Rehearsal,
    /// Regatta's own programs made it, and its checks passed.
    Informative,
    /// A checker refuses it.
    Fail,
}

impl PowerVerdict {
    /// Every verdict.
    pub const ALL: [Self; 4] = [Self::Pass, Self::Rehearsal, Self::Informative, Self::Fail];

    /// Returns the word for it in documents and on screens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Rehearsal => "rehearsal",
            Self::Informative => "informative",
            Self::Fail => "fail",
        }
    }

    /// Returns whether both checkers accept the session, so that it can be staged.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        matches!(self, Self::Pass | Self::Rehearsal)
    }
}

impl fmt::Display for PowerVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for PowerVerdict {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL.into_iter().find(|verdict| verdict.as_str() == text);
        found.ok_or_else(|| UnknownWord {
            kind: "verdict on a power session",
            text: text.to_owned(),
            known: "pass, rehearsal, informative, fail",
        })
    }
}
