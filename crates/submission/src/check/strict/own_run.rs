//! Whether each result and each test is of a run of its own. Two logs are of one run where they name the same millisecond as
//! its beginning, the log's own clock shows the same at its end, or the latencies are the same to the nanosecond. What the
//! rules let stand for two results is no fault. Which of two places a run was copied to is not decided here: both are named.

use std::collections::HashMap;

use super::{
    logged_run::LoggedRun,
    scenario::{Case, Outcome},
    walk::Job,
};
use crate::check::{finding::Findings, place::ScenarioPlace, rules, run_log::RunLog};

/// What the directories of a benchmark's accuracies end with, in all rounds.
const ACCURACIES: [&str; 3] = ["-95", "-99", "-99.9"];
/// Clocks and latencies below these are too coarse to tell runs apart.
const SHORTEST_LOG_MS: f64 = 1000.0;
const SHORTEST_LATENCY_NS: i128 = 10_000;

/// What a log is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    Performance,
    Ranging,
    Accuracy,
    Test(String),
}

/// What no two runs have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Mark {
    Begin(String),
    /// The log's clock when the run was over, in bits.
    LogTime(u64),
    /// The shortest latency, the longest one and the mean.
    Latencies([i128; 3]),
}

/// A log and what tells its run from others.
#[derive(Debug)]
pub(super) struct RunIdentity {
    role: Role,
    path: String,
    line: Option<u64>,
    marks: Vec<Mark>,
}

impl RunIdentity {
    /// Of the log in `directory`.
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

/// Names every log whose run stands in another place, too, where it may not.
pub(super) fn check(jobs: &[Job], outcomes: &mut [Outcome]) {
    let mut places: HashMap<&Mark, Vec<(usize, usize)>> = HashMap::new();
    for (job, outcome) in outcomes.iter().enumerate() {
        for (index, run) in outcome.runs.iter().enumerate() {
            for mark in &run.marks {
                places.entry(mark).or_default().push((job, index));
            }
        }
    }
    let mut found = Vec::new();
    for (job, outcome) in outcomes.iter().enumerate() {
        for (index, run) in outcome.runs.iter().enumerate() {
            let others = run.marks.iter().filter_map(|mark| places.get(mark)).flatten();
            let mut others = others.filter(|other| **other != (job, index));
            let elsewhere = others.find_map(|&(other_job, other_index)| {
                let other = outcomes.get(other_job)?.runs.get(other_index)?;
                let both = (&jobs.get(job)?.place, &jobs.get(other_job)?.place);
                (!may_share((both.0, run), (both.1, other))).then(|| other.path.clone())
            });
            found.extend(elsewhere.map(|path| (job, index, path)));
        }
    }
    for (job, index, other) in found {
        let Some(outcome) = outcomes.get_mut(job) else {
            continue;
        };
        let Some(run) = outcome.runs.get(index) else {
            continue;
        };
        report(run, &other, &mut outcome.findings);
        for row in &mut outcome.results {
            row.accepted = false;
        }
    }
}

fn report(run: &RunIdentity, other: &str, findings: &mut Findings) {
    let text = format!("the same run as {other}: at least one of the two is a copy");
    let fix = "measure each result on its own system and benchmark, and run each test by itself";
    findings.error(rules::OWN_RUN, (run.path.as_str(), run.line), text, fix);
}

/// Whether one run may stand for both: for two scenarios and two accuracies of a benchmark on a submitter's system, which may be
/// entered in two divisions.
fn may_share(
    (one, run): (&ScenarioPlace, &RunIdentity),
    (other, second): (&ScenarioPlace, &RunIdentity),
) -> bool {
    run.role == second.role
        && one.submitter == other.submitter
        && one.system == other.system
        && family(&one.model) == family(&other.model)
}

/// The benchmark without its accuracy.
fn family(model: &str) -> &str {
    let mut plain = ACCURACIES.iter().filter_map(|end| model.strip_suffix(end));
    plain.next().unwrap_or(model)
}
