//! The facts that a review needs beside a scenario's result: accuracy, queries and latencies from its logs.

use regatta_catalogue::round::SubmittedScenario;
use regatta_mllog::{
    latency_keys::{LISTED_PERCENTILES, LatencyKeys, Percentile},
    read::Value,
};

use super::case::Case;
use crate::check::run_log::RunLog;

/// One latency statistic of the performance run.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// The name of the statistic: a percentile, for example `99.00`, or `min`, `mean` or `max`.
    pub name: &'static str,
    /// The latency in nanoseconds.
    pub nanoseconds: f64,
}

/// One accuracy metric of the accuracy run, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// The metric's official name.
    pub name: String,
    /// The value that the accuracy script printed.
    pub value: String,
}

/// The facts from one scenario's logs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// The scenario's directory, relative to the submission's root.
    pub path: String,
    /// The metrics that the benchmark's accuracy target uses.
    pub accuracy: Vec<Metric>,
    /// The number of queries in the performance run.
    pub queries: Option<u64>,
    /// The version of LoadGen, or of the harness that replaces it.
    pub loadgen: Option<String>,
    /// The latencies from lowest to highest: per query in MultiStream, per sample in the other scenarios.
    pub latencies: Vec<Latency>,
}

/// Collects the facts from the performance run's log and the metrics of the accuracy run.
pub(super) fn of(case: &Case<'_>, performance: Option<&RunLog>, accuracy: Vec<Metric>) -> Facts {
    Facts {
        path: case.results.to_owned(),
        accuracy,
        queries: performance
            .and_then(|log| log.value("result_query_count"))
            .and_then(Value::as_u64),
        loadgen: performance
            .and_then(|log| log.text("loadgen_version"))
            .map(str::to_owned),
        latencies: performance.map_or_else(Vec::new, |log| latencies(log, case.scenario)),
    }
}

/// Returns the latencies of a performance run, lowest first.
fn latencies(log: &RunLog, scenario: SubmittedScenario) -> Vec<Latency> {
    let series = match scenario {
        // An inferred MultiStream result only has latencies per sample.
        SubmittedScenario::MultiStream => &[LatencyKeys::QUERIES, LatencyKeys::SAMPLES][..],
        _ => &[LatencyKeys::SAMPLES],
    };
    let latency = |name, key: &dyn Fn(&LatencyKeys) -> String| {
        let nanoseconds = series.iter().find_map(|keys| log.number(&key(keys)))?;
        Some(Latency { name, nanoseconds })
    };
    let [median, above @ ..] = LISTED_PERCENTILES;
    let percentile = |listed: Percentile| latency(listed.name, &move |keys| keys.percentile(listed));
    let first = [
        latency("min", &|keys| keys.min.to_owned()),
        percentile(median),
        latency("mean", &|keys| keys.mean.to_owned()),
    ];
    let last = latency("max", &|keys| keys.max.to_owned());
    let all = first.into_iter().chain(above.map(percentile)).chain([last]);
    all.flatten().collect()
}
