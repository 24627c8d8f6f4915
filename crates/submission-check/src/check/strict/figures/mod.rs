//! Compares a performance run's figures with each other, as LoadGen's `results.cc` derives them from the same latencies.
//!
//! An edited figure then contradicts the others. This module does not check what a result must be.

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

/// Checks the figures of a performance run.
pub(super) fn check(run: &LoggedRun<'_>, findings: &mut Findings) {
    let Some(sizes) = Sizes::of(run) else { return };
    latencies::check(run, &sizes, findings);
    timing::check(run, &sizes, findings);
    early_stopping::check(run, &sizes, findings);
    requirements::check(run, &sizes, findings);
    tokens::check(run, &sizes, findings);
}

/// Returns the number of samples of a run, or `None` if its log does not determine it.
pub(super) fn samples(run: &LoggedRun<'_>) -> Option<u64> {
    Some(Sizes::of(run)?.samples)
}

/// Returns whether every loaded sample was issued equally often, by the number of generated queries or samples.
pub(super) fn issues_whole_sets(run: &LoggedRun<'_>) -> bool {
    let Some(sizes) = Sizes::of(run) else { return false };
    let loaded = ["effective_performance_sample_count", "qsl_reported_total_count"].map(|key| run.count(key));
    let ([Some(set), Some(total)], Some(queries)) = (loaded, run.count("generated_query_count")) else {
        return false;
    };
    // The divisor must be positive, also for an empty library.
    let set = set.min(total).max(1);
    match sizes.scenario {
        Scenario::Offline => sizes.samples.is_multiple_of(set),
        _ => queries.is_multiple_of(set),
    }
}
