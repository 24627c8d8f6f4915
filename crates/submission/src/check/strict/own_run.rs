//! Whether each result and each test is of a run of its own: a log that was copied begins and ends with another one, to the
//! millisecond. What the rules let stand for two results is no fault.

use std::collections::HashMap;

use super::{scenario::Outcome, walk::Job};
use crate::check::{finding::Findings, rules, run_log::RunLog};

/// What the directories of a benchmark's accuracies end with, in all rounds.
const ACCURACIES: [&str; 3] = ["-95", "-99", "-99.9"];

/// When a run began and ended, by the clock of its machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Moment(String);

/// A run's moment; `None` where LoadGen did not stamp it.
pub(super) fn moment(log: &RunLog) -> Option<Moment> {
    let stamps = ["test_datetime", "power_begin", "power_end"].map(|key| log.text(key));
    let stamps: Option<Vec<_>> = stamps.into_iter().collect();
    Some(Moment(stamps?.join(" ")))
}

/// The log at `path` is not the performance run's.
pub(super) fn check(reference: &RunLog, (path, log): (&str, &RunLog), findings: &mut Findings) {
    let same = moment(reference).is_some_and(|reference| moment(log) == Some(reference));
    if same {
        let place = (path, log.line("power_begin"));
        let text = "the performance run's log once more: both began and ended in the same moment";
        let mend = "run it, and put the log of that run there";
        findings.error(rules::OWN_RUN, place, text, mend);
    }
}

/// No two results are of the same performance run, unless one is inferred from the other.
pub(super) fn results(jobs: &[Job], outcomes: &mut [Outcome]) {
    let mut first: HashMap<Moment, &Job> = HashMap::new();
    for (job, outcome) in jobs.iter().zip(outcomes) {
        let Some(moment) = outcome.moment.take() else {
            continue;
        };
        let earlier = *first.entry(moment).or_insert(job);
        if may_share(earlier, job) {
            continue;
        }
        let path = format!(
            "{}/performance/run_1/mlperf_log_detail.txt",
            job.place.below("results")
        );
        let text = format!("the run of {} once more", earlier.place.below("results"));
        let mend = "measure each result on its own system and benchmark";
        outcome.findings.error(rules::OWN_RUN, &path, text, mend);
        for row in &mut outcome.results {
            row.accepted = false;
        }
    }
}

/// Whether one run may stand for both: for two scenarios and two accuracies of a benchmark on a submitter's system, which may be
/// entered in two divisions.
fn may_share(one: &Job, other: &Job) -> bool {
    let (one, other) = (&one.place, &other.place);
    one.submitter == other.submitter
        && one.system == other.system
        && family(&one.model) == family(&other.model)
}

/// The benchmark without its accuracy.
fn family(model: &str) -> &str {
    let mut plain = ACCURACIES.iter().filter_map(|end| model.strip_suffix(end));
    plain.next().unwrap_or(model)
}
