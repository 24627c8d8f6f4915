//! The coordinator's judgement of a run, as its record keeps it: LoadGen's verdict, the figures, and what keeps the run from being a
//! measurement. It is made once, from the delivered files, by the version of the coordinator that the record names.

use serde::{Deserialize, Serialize};

/// The judgement of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// LoadGen's verdict, if it gave one.
    pub valid: Option<bool>,
    /// LoadGen's reasons for INVALID.
    pub reasons: Vec<String>,
    /// LoadGen's metric, if the summary has one.
    pub metric: Option<Metric>,
    /// The figure that the round's checker reports, if the run has one. It may differ from LoadGen's metric.
    pub figure: Option<Metric>,
    /// The number of samples of the run, if the detail log or the accuracy has it.
    pub samples: Option<u64>,
    /// The speed that the device showed.
    pub rates: Rates,
    /// The time and duration of LoadGen's run.
    pub timing: Option<RunTiming>,
    /// The reasons why this is not a valid measurement. Empty for a valid one.
    pub not_a_measurement: Vec<String>,
}

/// A metric of LoadGen's summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name in LoadGen's summary.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

/// The speed that a device showed in a run. Settings of later runs are estimated from it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Samples per second.
    #[serde(default)]
    pub samples_per_second: Option<f64>,
    /// Time of one query in nanoseconds, for scenarios with one query at a time.
    #[serde(default)]
    pub query_ns: Option<f64>,
    /// The requested Server rate in queries per second.
    #[serde(default)]
    pub target_qps: Option<f64>,
}

/// The time of LoadGen's run, by the device's clocks in the signed evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTiming {
    /// The wall time of LoadGen's start, RFC 3339 UTC.
    pub started: String,
    /// Whether the device's kernel considered its wall clock synchronised.
    pub synchronised: Option<bool>,
    /// The time between LoadGen's start and end by the monotonic clock, in nanoseconds.
    pub duration_ns: Option<u64>,
}
