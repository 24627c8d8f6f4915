//! The device's state around a run: which one was asked for, and the proof of which one there was. The words of a wish are
//! those of `regatta-state`; here they are only carried.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The state that a run wants of its device. A run without one takes the device as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSpec {
    /// What it is called: `MaxP`, `MaxQ`, or `own` for values that a plan names itself.
    pub name: String,
    /// Where the values come from, in words.
    pub source: String,
    /// The wish: `power-mode`, `fan`, `cores`, `cpu`, `gpu`, `memory`, `dla`, each with its value (`lock:max`,
    /// `cap:624750000`).
    pub wish: BTreeMap<String, String>,
}

impl StateSpec {
    /// The wish in one line, as `regatta-state` takes it.
    #[must_use]
    pub fn words(&self) -> String {
        let words: Vec<String> = self
            .wish
            .iter()
            .map(|(what, value)| format!("{what}={value}"))
            .collect();
        words.join(" ")
    }
}

/// What the device proves of its own state around a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StateProof {
    /// What was asked for; `None` takes the device as it is.
    pub asked: Option<StateSpec>,
    /// Every knob that was set, in the order of their names.
    pub set: Vec<KnobProof>,
    /// What could be read before anything was set, by knob.
    pub before: BTreeMap<String, String>,
    /// What could be read when everything had been put back, by knob.
    pub after: BTreeMap<String, String>,
    /// What could not be put back, in words.
    pub not_put_back: Option<String>,
    /// What was seen while the run process ran: throttling, over-current, clocks below their lock, knobs that moved.
    pub findings: Vec<StateFinding>,
    /// The samples that `telemetry.csv` holds.
    pub telemetry: Telemetry,
}

/// One knob that was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnobProof {
    /// Its name, such as `gpu-max`.
    pub knob: String,
    /// What was found.
    pub before: Option<String>,
    /// What was wanted.
    pub wanted: String,
    /// What was read after it had been set; a run is measured only when this is what was wanted.
    pub read: Option<String>,
}

/// Something that a sample showed and a measurement should not have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateFinding {
    /// When it was first seen, in seconds of `telemetry.csv`.
    pub seconds: f64,
    /// What.
    pub what: String,
    /// In how many samples.
    pub samples: u64,
}

/// What the samples of a run come to. Power is of the board's own sensors and no official measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Telemetry {
    /// Samples that were taken, one a second.
    pub samples: u64,
    /// Seconds without a sample.
    pub gaps: u64,
    /// Samples while LoadGen ran.
    pub window_samples: u64,
    /// The hottest zone while LoadGen ran, in thousandths of a degree Celsius.
    pub hottest_millicelsius: Option<i64>,
    /// Which rails make up the board's power.
    pub rails: Vec<String>,
    /// Their mean power while LoadGen ran, in milliwatts.
    pub milliwatts: Option<u64>,
    /// How long LoadGen ran, in milliseconds.
    pub window_ms: u64,
    /// Energy while LoadGen ran, in millijoules: mean power times length.
    pub millijoules: Option<u64>,
}
