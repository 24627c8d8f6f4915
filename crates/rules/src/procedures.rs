//! What a round's official tools do after the runs: which accuracy logs they cut, and how they judge an audit.
//!
//! Parameters only; the work itself is the submission crate's. Percentages are whole numbers, as the rules give them.

use serde::{Deserialize, Serialize};

use crate::{Division, Scenario};

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

/// How the round's scripts judge one audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
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
