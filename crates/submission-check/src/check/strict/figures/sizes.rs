//! The numbers of queries and samples of a run, from its log.

use regatta_types::Scenario;

use super::super::logged_run::LoggedRun;

/// The numbers of queries and samples of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) scenario: Scenario,
    pub(super) queries: u64,
    pub(super) samples: u64,
}

impl Sizes {
    /// Reads the numbers from the log. Returns `None` if they are missing or out of range.
    pub(super) fn of(run: &LoggedRun<'_>) -> Option<Self> {
        const MAX: u64 = 1 << 40;
        let scenario = run.scenario()?;
        let queries = run
            .count("result_query_count")
            .filter(|count| (1..MAX).contains(count))?;
        let each = run
            .count("generated_samples_per_query")
            .filter(|count| (1..MAX).contains(count))?;
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

/// Returns the number of samples in the Offline query.
///
/// It is the generated number, padded to whole sets where each sample is issued equally often. LoadGen up to v4.1 logs the number
/// before padding.
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

/// Returns the number of samples that follows from Offline's rate and its longest latency.
pub(super) fn samples_of_rate(run: &LoggedRun<'_>) -> Option<f64> {
    Some(run.number("result_samples_per_second")? * run.number("result_max_latency_ns")? / 1e9)
}
