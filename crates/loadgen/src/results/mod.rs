//! Computes a verdict from latencies: percentiles, early stopping, constraints and reasons, exactly as LoadGen does.
//!
//! This module measures nothing. The latencies may come from any source.

mod detail;
pub mod early_stopping;
mod latencies;
mod stopping;
mod summary;
mod verdict;

pub use latencies::{Latencies, LatencyRecorder};
pub use verdict::Results;

/// The result of a series of queries (LoadGen's `PerformanceResult`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SeriesResult {
    /// Latencies of samples.
    pub samples: Latencies,
    /// MultiStream: latencies of queries.
    pub queries: Latencies,
    /// Number of issued queries.
    pub queries_issued: u64,
    /// The longest latency of a sample, seconds.
    pub max_latency_s: f64,
    /// When the last query was due, in seconds from the start.
    pub final_query_scheduled_s: f64,
    /// When the last query was issued, in seconds from the start.
    pub final_query_issued_s: f64,
    /// When the last query was complete, in seconds from the start.
    pub final_query_done_s: f64,
    /// Token latencies, when they are measured.
    pub tokens: TokenLatencies,
}

/// Token latencies of a series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenLatencies {
    /// Time from a query's due time to its first token, ns.
    pub first: Latencies,
    /// Time per token after the first, ns.
    pub per_token: Latencies,
    /// Number of tokens of all samples.
    pub count: u64,
}

const NS_PER_S: f64 = 1e9;

#[expect(clippy::cast_precision_loss, reason = "LoadGen computes in doubles")]
const fn to_f64(n: u64) -> f64 {
    n as f64
}
