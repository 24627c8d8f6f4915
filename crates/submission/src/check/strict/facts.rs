//! What a review wants to see of a scenario beside its result: accuracy, queries and latencies, as its logs give them.

use regatta_config::round::SubmittedScenario;
use regatta_mllog::{
    latency_keys::{LISTED_PERCENTILES, LatencyKeys, Percentile},
    read::Value,
};

use super::case::Case;
use crate::check::run_log::RunLog;

/// A latency of the performance run.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// The percentile, such as `99.00`; `min`, `mean`, `max`.
    pub name: &'static str,
    /// In nanoseconds.
    pub nanoseconds: f64,
}

/// A metric of the accuracy run, as texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Its official name.
    pub name: String,
    /// What the accuracy script gave.
    pub value: String,
}

/// What a scenario's logs say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// The scenario's directory, from the submission's root.
    pub path: String,
    /// The metrics that the benchmark is judged by.
    pub accuracy: Vec<Metric>,
    /// Queries of the performance run.
    pub queries: Option<u64>,
    /// The version of LoadGen, or of the harness in its place.
    pub loadgen: Option<String>,
    /// Latencies from the lowest to the highest: of queries in MultiStream, else of samples.
    pub latencies: Vec<Latency>,
}

/// Collects them out of the performance run's log, beside the metrics of the accuracy run.
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

/// Reads the latencies of a performance run, the lowest first.
fn latencies(log: &RunLog, scenario: SubmittedScenario) -> Vec<Latency> {
    let series = match scenario {
        // A result that was inferred has latencies of samples only.
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
