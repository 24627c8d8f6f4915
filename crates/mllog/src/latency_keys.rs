//! The detail log's keys of latency series: minimum, maximum, mean and the percentiles that LoadGen lists.
//!
//! The module computes nothing.

/// A percentile that every log lists.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentile {
    /// The percentile as a fraction of 1.
    pub fraction: f64,
    /// The percentile as LoadGen writes it, for example `99.90`.
    pub name: &'static str,
}

/// The percentiles that every log lists, the lowest first.
pub const LISTED_PERCENTILES: [Percentile; 6] = [
    percentile(0.50, "50.00"),
    percentile(0.90, "90.00"),
    percentile(0.95, "95.00"),
    percentile(0.97, "97.00"),
    percentile(0.99, "99.00"),
    percentile(0.999, "99.90"),
];

const fn percentile(fraction: f64, name: &'static str) -> Percentile {
    Percentile { fraction, name }
}

/// The keys of one series of latencies, all in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyKeys {
    /// The key of the shortest latency.
    pub min: &'static str,
    /// The key of the longest latency.
    pub max: &'static str,
    /// The key of the mean.
    pub mean: &'static str,
    /// The parts of a percentile's key before and after its name.
    percentile: [&'static str; 2],
}

impl LatencyKeys {
    /// Latencies of samples, in every scenario.
    pub const SAMPLES: Self = Self {
        min: "result_min_latency_ns",
        max: "result_max_latency_ns",
        mean: "result_mean_latency_ns",
        percentile: ["result_", "_percentile_latency_ns"],
    };
    /// Latencies of queries, in MultiStream.
    pub const QUERIES: Self = Self {
        min: "result_min_query_latency_ns",
        max: "result_max_query_latency_ns",
        mean: "result_mean_query_latency_ns",
        percentile: ["result_", "_percentile_per_query_latency_ns"],
    };
    /// Times to the first token.
    pub const FIRST_TOKENS: Self = Self {
        min: "result_first_token_min_latency_ns",
        max: "result_first_token_max_latency_ns",
        mean: "result_first_token_mean_latency_ns",
        percentile: ["result_first_token_", "_percentile_latency_ns"],
    };
    /// Times per output token after the first.
    pub const OUTPUT_TOKENS: Self = Self {
        min: "result_time_to_output_token_min",
        max: "result_time_to_output_token_max",
        mean: "result_time_to_output_token_mean",
        percentile: ["result_time_per_output_token_", "_percentile_ns"],
    };

    /// Returns the key of a percentile.
    #[must_use]
    pub fn percentile(&self, percentile: Percentile) -> String {
        let [before, after] = self.percentile;
        format!("{before}{}{after}", percentile.name)
    }

    /// Returns the keys that LoadGen writes, in its order of [`SAMPLES`](Self::SAMPLES).
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        let ends = [self.min, self.max, self.mean].map(str::to_owned);
        let percentiles = LISTED_PERCENTILES.map(|percentile| self.percentile(percentile));
        ends.into_iter().chain(percentiles).collect()
    }
}
