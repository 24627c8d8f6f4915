//! The device's state around a run: the requested state and the proof of the state that was applied. `regatta-state` defines the settings
//! and their values; these documents only carry them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::GateProof;

/// The device state that a run requests. A run without one leaves the device as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSpec {
    /// Its name: `MaxP`, `MaxQ`, or `own` for values that a plan sets itself.
    pub name: String,
    /// Where the values come from, as text.
    pub source: String,
    /// The requested settings: `power-mode`, `fan`, `cores`, `cpu`, `gpu`, `memory`, `dla`, each with its value (`lock:max`,
    /// `cap:624750000`).
    pub controls: BTreeMap<String, String>,
}

impl StateSpec {
    /// Returns the requested settings in one line, in the syntax of `regatta-state`.
    #[must_use]
    pub fn words(&self) -> String {
        let words: Vec<String> = self
            .controls
            .iter()
            .map(|(what, value)| format!("{what}={value}"))
            .collect();
        words.join(" ")
    }
}

/// The device's proof of its own state around a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StateProof {
    /// The requested state; `None` leaves the device as it is.
    pub requested: Option<StateSpec>,
    /// Every device control that was set, ordered by name.
    pub set: Vec<ControlProof>,
    /// Readable values before anything was set, by control.
    pub before: BTreeMap<String, String>,
    /// Readable values after the state was restored, by control.
    pub after: BTreeMap<String, String>,
    /// What could not be restored, as text.
    pub not_restored: Option<String>,
    /// Events while the run process ran: throttling, over-current, clocks below their lock, controls that changed.
    pub findings: Vec<StateFinding>,
    /// Summary of the samples in `telemetry.csv`.
    pub telemetry: Telemetry,
    /// The readings with which the run's gate opened. `None` without a gate, and when it did not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateProof>,
}

/// One device control that was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlProof {
    /// Its name, for example `gpu-max`.
    pub control: String,
    /// The value before it was set.
    pub before: Option<String>,
    /// The requested value.
    pub requested: String,
    /// The value read back after it was set. A run is measured only when this equals the requested value.
    pub read: Option<String>,
}

/// An event in the telemetry samples that disturbs a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateFinding {
    /// Time of the first occurrence, in seconds of `telemetry.csv`.
    pub seconds: f64,
    /// Description of the event.
    pub what: String,
    /// Number of samples with the event.
    pub samples: u64,
}

/// Summary of a run's telemetry samples. Power comes from the board's own sensors and is not an official measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Telemetry {
    /// Number of samples, one per second.
    pub samples: u64,
    /// Seconds without a sample.
    pub gaps: u64,
    /// Samples while LoadGen ran.
    pub window_samples: u64,
    /// The hottest zone while LoadGen ran, in thousandths of a degree Celsius.
    pub hottest_millicelsius: Option<i64>,
    /// The rails whose sum is the board's power.
    pub rails: Vec<String>,
    /// Mean power of these rails while LoadGen ran, in milliwatts.
    pub milliwatts: Option<u64>,
    /// Mean power at the wall while LoadGen ran, in milliwatts, from a meter that is not a listed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_milliwatts: Option<u64>,
    /// How long LoadGen ran, in milliseconds.
    pub window_ms: u64,
    /// Energy while LoadGen ran, in millijoules: mean power times duration.
    pub millijoules: Option<u64>,
}
