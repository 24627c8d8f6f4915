//! A performance run's figures against each other, as LoadGen's `results.cc` makes them out of the same latencies: who edits
//! one of them leaves the others as they were. What a result must be is not judged here.

mod early_stopping;
mod latencies;
mod requirements;
mod sizes;
mod timing;
mod tokens;

pub(super) use early_stopping::numbers as paragraph_numbers;
use regatta_types::Scenario;
use sizes::{Sizes, samples_of_rate};

use super::logged_run::LoggedRun;
use crate::check::finding::Findings;

/// Judges the figures of a performance run.
pub(super) fn check(run: &LoggedRun<'_>, findings: &mut Findings) {
    let Some(sizes) = Sizes::of(run) else { return };
    latencies::check(run, &sizes, findings);
    timing::check(run, &sizes, findings);
    early_stopping::check(run, &sizes, findings);
    requirements::check(run, &sizes, findings);
    tokens::check(run, &sizes, findings);
}

/// The samples of a run; `None` where its log does not say.
pub(super) fn samples(run: &LoggedRun<'_>) -> Option<u64> {
    Some(Sizes::of(run)?.samples)
}

/// Whether each of the loaded samples was issued as often as the others, by the number of queries or samples generated.
pub(super) fn issues_whole_sets(run: &LoggedRun<'_>) -> bool {
    let Some(sizes) = Sizes::of(run) else { return false };
    let loaded = ["effective_performance_sample_count", "qsl_reported_total_count"].map(|key| run.count(key));
    let ([Some(set), Some(total)], Some(queries)) = (loaded, run.count("generated_query_count")) else {
        return false;
    };
    // An empty library is no set.
    let set = set.min(total).max(1);
    match sizes.scenario {
        Scenario::Offline => sizes.samples.is_multiple_of(set),
        _ => queries.is_multiple_of(set),
    }
}
