//! The values that distinguish one run from another in their logs.
//!
//! `own_run` decides which places may share a run.

use super::{case::Case, logged_run::LoggedRun};
use crate::check::run_log::RunLog;

/// Clock readings and latencies below these limits are too coarse to distinguish runs.
const MIN_LOG_MS: f64 = 1000.0;
const MIN_LATENCY_NS: i128 = 10_000;

/// The purpose of a run in a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    Performance,
    Ranging,
    Accuracy,
    Test(String),
}

/// A value that two different runs do not share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Mark {
    Begin(String),
    /// The log's clock at the end of the run, in milliseconds, as the bits of an `f64`.
    LogTime(u64),
    /// The minimum, maximum and mean latency in nanoseconds.
    Latencies([i128; 3]),
}

/// A log, and the values that distinguish its run from others.
#[derive(Debug)]
pub(super) struct RunIdentity {
    pub(super) role: Role,
    pub(super) path: String,
    pub(super) line: Option<u64>,
    pub(super) marks: Vec<Mark>,
}

impl RunIdentity {
    /// Builds the identity from `log`, which was read from `directory`.
    pub(super) fn of(case: &Case<'_>, directory: &str, log: &RunLog, role: Role) -> Self {
        let path = format!("{directory}/mlperf_log_detail.txt");
        let run = LoggedRun {
            case,
            log,
            path: &path,
        };
        let begin = log.text("power_begin").map(|stamp| Mark::Begin(stamp.to_owned()));
        let end = log.time_ms("power_begin").filter(|time| *time > MIN_LOG_MS);
        let keys = [
            "result_min_latency_ns",
            "result_max_latency_ns",
            "result_mean_latency_ns",
        ];
        let latencies = match keys.map(|key| run.integer(key)) {
            [Some(min), Some(max), Some(mean)] if min != max && max > MIN_LATENCY_NS => {
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
