//! What distinguishes one run from another in their logs. Which runs may be the same is `own_run`'s part.

use super::{case::Case, logged_run::LoggedRun};
use crate::check::run_log::RunLog;

/// Clocks and latencies below these are too coarse to tell runs apart.
const SHORTEST_LOG_MS: f64 = 1000.0;
const SHORTEST_LATENCY_NS: i128 = 10_000;

/// The part that a run has in a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    Performance,
    Ranging,
    Accuracy,
    Test(String),
}

/// A value that no two runs have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Mark {
    Begin(String),
    /// The log's clock when the run was over, in bits.
    LogTime(u64),
    /// The shortest latency, the longest one and the mean.
    Latencies([i128; 3]),
}

/// A log and the values that distinguish its run from others.
#[derive(Debug)]
pub(super) struct RunIdentity {
    pub(super) role: Role,
    pub(super) path: String,
    pub(super) line: Option<u64>,
    pub(super) marks: Vec<Mark>,
}

impl RunIdentity {
    /// Reads the identity of the log in `directory`.
    pub(super) fn of(case: &Case<'_>, directory: &str, log: &RunLog, role: Role) -> Self {
        let path = format!("{directory}/mlperf_log_detail.txt");
        let run = LoggedRun {
            case,
            log,
            path: &path,
        };
        let begin = log.text("power_begin").map(|stamp| Mark::Begin(stamp.to_owned()));
        let end = log.time_ms("power_begin").filter(|time| *time > SHORTEST_LOG_MS);
        let keys = [
            "result_min_latency_ns",
            "result_max_latency_ns",
            "result_mean_latency_ns",
        ];
        let latencies = match keys.map(|key| run.integer(key)) {
            [Some(min), Some(max), Some(mean)] if min != max && max > SHORTEST_LATENCY_NS => {
                Some(Mark::Latencies([min, max, mean]))
            }
            _ => None,
        };
        let marks = [begin, end.map(|time| Mark::LogTime(time.to_bits())), latencies];
        Self {
            role,
            line: log.line("power_begin"),
            marks: marks.into_iter().flatten().collect(),
            path,
        }
    }
}
