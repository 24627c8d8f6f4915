//! What a round's official tools do after the runs: which accuracy logs they cut, what an audit's run is told, and how it is
//! judged.
//!
//! Parameters only; the work itself is the submission crate's. Percentages are whole numbers, as the rules give them.

use std::collections::BTreeMap;

use regatta_types::{Division, Scenario};
use serde::{Deserialize, Serialize};

/// How the round's `truncate_accuracy_log.py` finds and marks accuracy logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truncation {
    /// Divisions it looks at.
    pub divisions: Vec<Division>,
    /// Audits whose logs lie below `results/<system>/<model>/<scenario>/`.
    #[serde(default)]
    pub audits_in_results: Vec<String>,
    /// Those among them whose `accuracy.txt` it writes anew, with nothing but the hash.
    #[serde(default)]
    pub hash_only_audits: Vec<String>,
    /// Audits whose logs lie below `compliance/<system>/<model>/<scenario>/`.
    #[serde(default)]
    pub audits_in_compliance: Vec<String>,
    /// Divisions in which it looks below `compliance/`.
    #[serde(default)]
    pub compliance_divisions: Vec<Division>,
    /// Whether the hash line is preceded by a line feed (since v5.0).
    pub line_feed_before_hash: bool,
}

/// Where an audit's performance script takes its scores from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScoreSource {
    /// The text of `mlperf_log_summary.txt`.
    Summary,
    /// The records of `mlperf_log_detail.txt`.
    Detail,
}

/// Which side of the reference score is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bounds {
    /// Both, the limits themselves excluded.
    Both,
    /// Both, the limits themselves included.
    Inclusive,
    /// No more than so much above the reference.
    Above,
    /// No worse: a rate not below, a latency not above.
    Worse,
}

/// The line of TEST01's `audit.config` that differs between benchmarks.
const SAMPLING_TARGET: &str = "*.*.accuracy_log_sampling_target = ";

/// How one audit is run, and how the round's scripts judge it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// The official `audit.config`, to the byte.
    pub config: String,
    /// TEST01: about so many responses are logged, where the benchmark's own `audit.config` says another number; by
    /// LoadGen's name of the model.
    #[serde(default)]
    pub sampling_target: BTreeMap<String, u64>,
    /// TEST05: whether the run draws from the round's other seeds.
    #[serde(default)]
    pub other_seeds: bool,
    /// Where scores come from.
    pub scores: ScoreSource,
    /// Which way a score may differ.
    pub bounds: Bounds,
    /// How far, in percent of the reference.
    pub tolerance_percent: u32,
    /// How far where the reference is a short latency, in percent.
    pub short_latency_tolerance_percent: u32,
    /// With [`Bounds::Worse`]: the scenarios whose score is a rate.
    #[serde(default)]
    pub rates: Vec<Scenario>,
    /// Whether the streams' latency estimates are turned into rates before they are compared (TEST04).
    #[serde(default)]
    pub latency_as_rate: bool,
    /// The spellings under which the summary gives SingleStream's early-stopping percentile.
    #[serde(default)]
    pub single_stream_percentiles: Vec<String>,
    /// The same for MultiStream.
    #[serde(default)]
    pub multi_stream_percentiles: Vec<String>,
    /// TEST01: whether comparing no sample at all fails (since v4.0).
    #[serde(default)]
    pub needs_a_match: bool,
    /// Whether a refusal on the standard error output gets into `verify_performance.txt`.
    #[serde(default)]
    pub refusal_in_file: bool,
}

impl Audit {
    /// The `audit.config` for a benchmark, by LoadGen's name of its model: the official file of that benchmark to the
    /// byte, or the general one where the benchmark has none.
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
