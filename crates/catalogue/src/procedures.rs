//! Parameters of a round's official tools that run after the benchmark: truncation of accuracy logs, audit settings, audit verification.
//!
//! The submission crate does the work itself. Percentages are integers, as in the rules.

use std::collections::BTreeMap;

use regatta_types::{Division, Scenario};
use serde::{Deserialize, Serialize};

/// How the round's `truncate_accuracy_log.py` finds and marks accuracy logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truncation {
    /// Divisions that it processes.
    pub divisions: Vec<Division>,
    /// Audits whose logs are below `results/<system>/<model>/<scenario>/`.
    #[serde(default)]
    pub audits_in_results: Vec<String>,
    /// Audits among these whose `accuracy.txt` it replaces by a file with only the hash.
    #[serde(default)]
    pub hash_only_audits: Vec<String>,
    /// Audits whose logs are below `compliance/<system>/<model>/<scenario>/`.
    #[serde(default)]
    pub audits_in_compliance: Vec<String>,
    /// Divisions in which it processes `compliance/`.
    #[serde(default)]
    pub compliance_divisions: Vec<Division>,
    /// Whether a line feed precedes the hash line (since v5.0).
    pub line_feed_before_hash: bool,
}

/// The log from which an audit's performance script reads the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScoreSource {
    /// The text of `mlperf_log_summary.txt`.
    Summary,
    /// The records of `mlperf_log_detail.txt`.
    Detail,
}

/// How the audit's score is bounded by the reference score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bounds {
    /// Both sides, excluding the limits.
    Both,
    /// Both sides, including the limits.
    Inclusive,
    /// Only above: not more than the tolerance above the reference.
    Above,
    /// Only worse: a rate not below the reference by more than the tolerance, a latency not above.
    Worse,
}

/// The line of TEST01's `audit.config` that differs between benchmarks.
const SAMPLING_TARGET: &str = "*.*.accuracy_log_sampling_target = ";

/// How one audit is executed, and how the round's scripts verify it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// The official `audit.config`, byte for byte.
    pub config: String,
    /// TEST01: target number of logged responses, for benchmarks whose own `audit.config` has a different number; by LoadGen's name of the
    /// model.
    #[serde(default)]
    pub sampling_target: BTreeMap<String, u64>,
    /// TEST05: whether the run uses the round's alternative seeds.
    #[serde(default)]
    pub other_seeds: bool,
    pub scores: ScoreSource,
    /// The direction in which a score may differ.
    pub bounds: Bounds,
    /// Tolerance in percent of the reference.
    pub tolerance_percent: u32,
    /// Tolerance in percent when the reference is a short latency.
    pub short_latency_tolerance_percent: u32,
    /// With [`Bounds::Worse`]: the scenarios whose score is a rate.
    #[serde(default)]
    pub rates: Vec<Scenario>,
    /// Whether the latency estimates of SingleStream and MultiStream are converted to rates before the comparison (TEST04).
    #[serde(default)]
    pub latency_as_rate: bool,
    /// The names of SingleStream's early-stopping percentile in the summary.
    #[serde(default)]
    pub single_stream_percentiles: Vec<String>,
    /// The names of MultiStream's early-stopping percentile in the summary.
    #[serde(default)]
    pub multi_stream_percentiles: Vec<String>,
    /// TEST01: whether a comparison without any sample fails (since v4.0).
    #[serde(default)]
    pub needs_a_match: bool,
    /// Whether the script's error output is included in `verify_performance.txt`.
    #[serde(default)]
    pub refusal_in_file: bool,
}

impl Audit {
    /// Returns the `audit.config` for a benchmark, by LoadGen's name of its model. It is the official file of that benchmark byte for
    /// byte, or the general one when the benchmark has none.
    #[must_use]
    pub fn config_for(&self, model: &str) -> String {
        let Some(target) = self.sampling_target.get(model) else {
            return self.config.clone();
        };
        let own = |line: &str| match line.strip_prefix(SAMPLING_TARGET) {
            Some(_) => format!("{SAMPLING_TARGET}{target}\n"),
            None => line.to_owned(),
        };
        self.config.split_inclusive('\n').map(own).collect()
    }
}
