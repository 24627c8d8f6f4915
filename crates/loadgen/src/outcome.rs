//! What a run came to, in LoadGen's own terms. The logs hold the same; this is for callers that need not parse them.

use std::path::PathBuf;

use regatta_conf::TestSettings;

use crate::{effective::EffectiveSettings, identity::LoadgenIdentity, timing::Timing};

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Which LoadGen ran.
    pub identity: LoadgenIdentity,
    /// The settings as requested, conf files applied.
    pub requested: TestSettings,
    /// What LoadGen made of them.
    pub effective: EffectiveSettings,
    /// The accuracy pass; `None` where the mode has none.
    pub accuracy: Option<Issued>,
    /// The measurement; `None` where the mode has none or it did not come to results.
    pub performance: Option<Performance>,
    /// LoadGen's verdict on the measurement; `None` after AccuracyOnly without faults, as LoadGen then gives none.
    pub valid: Option<bool>,
    /// Why it is not valid: LoadGen's own sentences from the summary, then every fault.
    pub reasons: Vec<String>,
    /// What went wrong while it ran: failed or panicked SUT, stall, unknown and double answers.
    pub faults: Vec<String>,
    /// What the user should know although the run is not worse for it, such as conf entries without effect.
    pub warnings: Vec<String>,
    /// How the timing thread ran; `None` where no query was issued. Of several, the first.
    pub timing: Option<Timing>,
    /// Lines with `is_error` in the detail log.
    pub error_lines: u64,
    /// The log files, in the order summary, detail, accuracy, and trace if asked for.
    pub log_files: Vec<PathBuf>,
}

/// How much was issued.
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
    /// How much was issued.
    pub issued: Issued,
    /// The scenario's result as the summary's headline has it.
    pub metric: Metric,
    /// Server: whether the latency bound was kept.
    pub performance_constraints_met: Option<bool>,
    /// Whether it lasted long enough.
    pub min_duration_met: bool,
    /// Whether there were enough queries and samples.
    pub min_queries_met: bool,
    /// Whether early stopping's statistics are satisfied.
    pub early_stopping_met: bool,
    /// The summary's early stopping text, lines separated by `\n`; empty for Offline.
    pub early_stopping: String,
    /// SingleStream: early stopping's estimate of the target percentile, ns.
    pub early_stopping_latency_ss: Option<i64>,
    /// MultiStream, and SingleStream for inference of MultiStream: the estimate, ns.
    pub early_stopping_latency_ms: Option<i64>,
    /// Latency: of samples, for MultiStream of queries.
    pub latency: LatencyStats,
}

/// A headline: `Samples per second: 5123.4`.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The words before the colon.
    pub name: String,
    /// The value as the summary prints it.
    pub text: String,
    /// The same value, unrounded.
    pub value: f64,
    /// `ns`, `queries/s` or `samples/s`.
    pub unit: &'static str,
}

/// A latency distribution in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatencyStats {
    /// The smallest.
    pub min: i64,
    /// The largest.
    pub max: i64,
    /// The mean, rounded down.
    pub mean: i64,
    /// Percentile as a fraction, and its value.
    pub percentiles: Vec<(f64, i64)>,
}
