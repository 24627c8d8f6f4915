//! What a review wants to see of a scenario beside its result: accuracy, queries and latencies, as its logs give them.

use regatta_config::round::SubmittedScenario;
use regatta_mllog::read::Value;

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

/// Names as the page gives them, and keys of a detail log without their ending.
const LATENCIES: [(&str, &str); 9] = [
    ("min", "result_min"),
    ("50.00", "result_50.00_percentile"),
    ("mean", "result_mean"),
    ("90.00", "result_90.00_percentile"),
    ("95.00", "result_95.00_percentile"),
    ("97.00", "result_97.00_percentile"),
    ("99.00", "result_99.00_percentile"),
    ("99.90", "result_99.90_percentile"),
    ("max", "result_max"),
];

/// Collects them out of the performance run's log, beside the metrics of the accuracy run.
pub(super) fn of(case: &Case<'_>, performance: Option<&RunLog>, accuracy: Vec<Metric>) -> Facts {
    let ending = match case.scenario {
        SubmittedScenario::MultiStream => "query_latency_ns",
        _ => "latency_ns",
    };
    let latency = |(name, key): (&'static str, &str)| {
        let log = performance?;
        let per_query = format!("{key}_per_{ending}");
        let keys = [per_query, format!("{key}_{ending}"), format!("{key}_latency_ns")];
        let nanoseconds = keys.iter().find_map(|key| log.number(key))?;
        Some(Latency { name, nanoseconds })
    };
    Facts {
        path: case.results.to_owned(),
        accuracy,
        queries: performance
            .and_then(|log| log.value("result_query_count"))
            .and_then(Value::as_u64),
        loadgen: performance
            .and_then(|log| log.text("loadgen_version"))
            .map(str::to_owned),
        latencies: LATENCIES.into_iter().filter_map(latency).collect(),
    }
}
