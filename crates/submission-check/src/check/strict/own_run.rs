//! Checks that every result and every compliance test has its own run.
//!
//! Two logs belong to the same run if they agree in one of three values. These are the begin timestamp in milliseconds, the log's
//! own clock at the end of the run, and the latencies in nanoseconds. Two results may share a run where the rules allow it. The
//! check does not decide which of the two places holds the copy; it reports both.

use std::collections::HashMap;

use super::{
    run_identity::{Mark, RunIdentity},
    scenario::StrictOutcome,
    walk::StrictJob,
};
use crate::check::{finding::Findings, place::ScenarioPlace, rules};

/// Accuracy suffixes of benchmark directory names in all rounds.
const ACCURACIES: [&str; 3] = ["-95", "-99", "-99.9"];
/// Reports every log whose run also appears in another place where the rules do not allow it.
pub(super) fn check(jobs: &[StrictJob], outcomes: &mut [StrictOutcome]) {
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
    let fix =
        "measure each result in a separate run on its system and benchmark, and run each test separately";
    findings.error(rules::OWN_RUN, (run.path.as_str(), run.line), text, fix);
}

/// Returns whether two places may share one run.
///
/// Scenarios and accuracy variants of one benchmark on one system of a submitter may share it. The submitter may enter this
/// system in two divisions.
fn may_share(
    (one, run): (&ScenarioPlace, &RunIdentity),
    (other, second): (&ScenarioPlace, &RunIdentity),
) -> bool {
    run.role == second.role
        && one.submitter == other.submitter
        && one.system == other.system
        && family(&one.model) == family(&other.model)
}

/// Returns the benchmark name without its accuracy suffix.
fn family(model: &str) -> &str {
    let mut plain = ACCURACIES.iter().filter_map(|end| model.strip_suffix(end));
    plain.next().unwrap_or(model)
}
