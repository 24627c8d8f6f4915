//! Whether each result and each test is of a run of its own. Two logs are of one run where they name the same millisecond as
//! its beginning, the log's own clock shows the same at its end, or the latencies are the same to the nanosecond. What the
//! rules let stand for two results is no fault. Which of two places a run was copied to is not decided here: both are named.

use std::collections::HashMap;

use super::{
    run_identity::{Mark, RunIdentity},
    scenario::Outcome,
    walk::Job,
};
use crate::check::{finding::Findings, place::ScenarioPlace, rules};

/// What the directories of a benchmark's accuracies end with, in all rounds.
const ACCURACIES: [&str; 3] = ["-95", "-99", "-99.9"];
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
