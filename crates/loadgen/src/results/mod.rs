//! From latencies to a verdict: percentiles, early stopping, constraints and the reasons, exactly as LoadGen has them.
//!
//! Nothing here measures; the same code can judge latencies from anywhere.

mod detail;
pub mod early_stopping;
mod latencies;
mod stopping;
mod summary;
mod verdict;

pub use latencies::{Latencies, LatencyRecorder};
pub use verdict::Results;

/// What a series of queries came to (LoadGen's `PerformanceResult`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SeriesResult {
    /// Latencies of samples.
    pub samples: Latencies,
    /// MultiStream: latencies of queries.
    pub queries: Latencies,
    /// Queries issued.
    pub queries_issued: u64,
    /// The longest latency of a sample, seconds.
    pub max_latency_s: f64,
    /// When the last query was due, seconds from the start.
    pub final_query_scheduled_s: f64,
    /// When it was issued.
    pub final_query_issued_s: f64,
    /// When it was answered in full.
    pub final_query_done_s: f64,
    /// Token latencies, where they are measured.
    pub tokens: TokenLatencies,
}

/// Token latencies of a series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenLatencies {
    /// From when a query was due to its first token, ns.
    pub first: Latencies,
    /// Time per token after the first, ns.
    pub per_token: Latencies,
    /// Tokens of all samples.
    pub count: u64,
}

const NS_PER_S: f64 = 1e9;

#[expect(clippy::cast_precision_loss, reason = "LoadGen computes in doubles")]
const fn to_f64(n: u64) -> f64 {
    n as f64
}
