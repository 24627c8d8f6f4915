//! The keys of results in the detail log, with their names in the summary and their units.
//!
//! Which key is a run's official result is the round's rule.

/// A rate in both logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateKey {
    /// Its label in the summary.
    pub label: &'static str,
    /// Its key in the detail log.
    pub key: &'static str,
    /// Its unit.
    pub unit: &'static str,
}

/// The rates that LoadGen reports.
pub const RATES: [RateKey; 9] = [
    samples("Samples per second", "result_samples_per_second"),
    samples("Scheduled samples per second", "result_scheduled_samples_per_sec"),
    samples("Completed samples per second", "result_completed_samples_per_sec"),
    tokens("Tokens per second", "result_tokens_per_second"),
    tokens(
        "Tokens per second (inferred)",
        "result_inferred_tokens_per_second",
    ),
    tokens(
        "Completed tokens per second",
        "result_completed_tokens_per_second",
    ),
    tokens(
        "Completed tokens per second (inferred)",
        "result_inferred_completed_tokens_per_second",
    ),
    queries("QPS w/ loadgen overhead", "result_qps_with_loadgen_overhead"),
    queries("QPS w/o loadgen overhead", "result_qps_without_loadgen_overhead"),
];

/// Early stopping's estimates of the target percentile in nanoseconds: of SingleStream and of MultiStream. An estimate of 0 means that
/// the run had too few queries.
pub const EARLY_STOPPING_ESTIMATES: [&str; 2] = ["early_stopping_latency_ss", "early_stopping_latency_ms"];

const fn samples(label: &'static str, key: &'static str) -> RateKey {
    let unit = "samples/s";
    RateKey { label, key, unit }
}

const fn tokens(label: &'static str, key: &'static str) -> RateKey {
    let unit = "tokens/s";
    RateKey { label, key, unit }
}

const fn queries(label: &'static str, key: &'static str) -> RateKey {
    let unit = "queries/s";
    RateKey { label, key, unit }
}

impl RateKey {
    /// Returns the rate with this label in the summary.
    #[must_use]
    pub fn labelled(label: &str) -> Option<&'static Self> {
        RATES.iter().find(|rate| rate.label == label)
    }

    /// Returns the rate with this key in the detail log.
    #[must_use]
    pub fn of(key: &str) -> Option<&'static Self> {
        RATES.iter().find(|rate| rate.key == key)
    }
}
