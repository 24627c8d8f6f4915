//! A performance run's figures against each other, as LoadGen's `results.cc` makes them out of the same latencies: who edits
//! one of them leaves the others as they were. What a result must be is not judged here.

mod early_stopping;
mod latencies;
mod requirements;
mod timing;
mod tokens;

pub(super) use early_stopping::numbers as paragraph_numbers;
use regatta_types::Scenario;

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

/// How many queries and samples a run had.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) scenario: Scenario,
    pub(super) queries: u64,
    pub(super) samples: u64,
}

impl Sizes {
    /// `None` where the log does not say, or says nothing that a run can be.
    fn of(run: &LoggedRun<'_>) -> Option<Self> {
        const MOST: u64 = 1 << 40;
        let scenario = run.scenario()?;
        let queries = run
            .count("result_query_count")
            .filter(|count| (1..MOST).contains(count))?;
        let each = run
            .count("generated_samples_per_query")
            .filter(|count| (1..MOST).contains(count))?;
        let samples = match scenario {
            Scenario::SingleStream | Scenario::Server => queries,
            Scenario::MultiStream => queries.checked_mul(each)?,
            Scenario::Offline => offline_samples(run, each),
        };
        Some(Self {
            scenario,
            queries,
            samples,
        })
    }
}

/// The samples of Offline's query: as many as were generated, filled up to whole sets where each sample is issued as often as
/// the others. LoadGens up to v4.1 log the number before.
fn offline_samples(run: &LoggedRun<'_>, generated: u64) -> u64 {
    let loaded = ["effective_performance_sample_count", "qsl_reported_total_count"].map(|key| run.count(key));
    let [Some(set), Some(total)] = loaded else {
        return generated;
    };
    let (Some(filled_up), Some(samples)) = (
        generated.checked_next_multiple_of(set.min(total)),
        samples_of_rate(run),
    ) else {
        return generated;
    };
    let distance = |count: u64| (samples - count as f64).abs();
    match distance(filled_up) < distance(generated) {
        true => filled_up,
        false => generated,
    }
}

/// The number of samples that Offline's rate and longest latency are of.
fn samples_of_rate(run: &LoggedRun<'_>) -> Option<f64> {
    Some(run.number("result_samples_per_second")? * run.number("result_max_latency_ns")? / 1e9)
}
