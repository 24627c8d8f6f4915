//! The result of a run in LoadGen's own terms. The logs have the same content; this form spares callers from parsing them.

use std::path::PathBuf;

use regatta_loadgen_conf::TestSettings;

use crate::{effective::EffectiveSettings, identity::LoadgenIdentity, timing::Timing};

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The LoadGen that ran.
    pub identity: LoadgenIdentity,
    /// The requested settings, with conf files applied.
    pub requested: TestSettings,
    /// The effective settings that LoadGen derived from them.
    pub effective: EffectiveSettings,
    /// The accuracy pass; `None` when the mode has none.
    pub accuracy: Option<Issued>,
    /// The measurement; `None` when the mode has none or the measurement has no results.
    pub performance: Option<Performance>,
    /// LoadGen's verdict on the measurement. `None` after AccuracyOnly without faults, because LoadGen then has no verdict.
    pub valid: Option<bool>,
    /// Why the run is not valid: LoadGen's own sentences from the summary, then every fault.
    pub reasons: Vec<String>,
    /// Faults during the run: SUT failures and panics, stalls, unknown and repeated responses.
    pub faults: Vec<String>,
    /// Warnings that do not affect the result, for example conf entries without effect.
    pub warnings: Vec<String>,
    /// How the timing thread ran, the first one if there are several. `None` when no query was issued.
    pub timing: Option<Timing>,
    /// Lines with `is_error` in the detail log.
    pub error_lines: u64,
    /// The log files in the order summary, detail, accuracy, and trace if requested.
    pub log_files: Vec<PathBuf>,
}

/// Number of issued queries and samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Issued {
    /// Queries.
    pub queries: u64,
    /// Samples.
    pub samples: u64,
}

/// A measurement's results.
#[derive(Debug, Clone, PartialEq)]
pub struct Performance {
    /// Number of issued queries and samples.
    pub issued: Issued,
    /// The scenario's result, as the summary's first result line states it.
    pub metric: Metric,
    /// Server: whether the latency bound was met.
    pub performance_constraints_met: Option<bool>,
    /// Whether the run reached the minimum duration.
    pub min_duration_met: bool,
    /// Whether the run reached the minimum number of queries and samples.
    pub min_queries_met: bool,
    /// Whether the early stopping criterion is met.
    pub early_stopping_met: bool,
    /// The summary's early stopping text, lines separated by `\n`; empty for Offline.
    pub early_stopping: String,
    /// SingleStream: early stopping's estimate of the target percentile, in ns.
    pub early_stopping_latency_ss: Option<i64>,
    /// MultiStream, and SingleStream for inference of MultiStream: early stopping's estimate, in ns.
    pub early_stopping_latency_ms: Option<i64>,
    /// Latencies of samples, for MultiStream of queries.
    pub latency: LatencyStats,
}

/// A result line of the summary: `Samples per second: 5123.4`.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The text before the colon.
    pub name: String,
    /// The value as printed in the summary.
    pub text: String,
    /// The same value, unrounded.
    pub value: f64,
    /// `ns`, `queries/s` or `samples/s`.
    pub unit: &'static str,
}

/// A latency distribution in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatencyStats {
    /// The smallest latency.
    pub min: i64,
    /// The largest latency.
    pub max: i64,
    /// The mean, rounded down.
    pub mean: i64,
    /// Pairs of a percentile as a fraction and its value.
    pub percentiles: Vec<(f64, i64)>,
}
