//! LoadGen's requested test settings (LoadGen `TestSettings`), with LoadGen's defaults.
//!
//! The LoadGen crate computes the effective settings. [`crate`] describes how conf files change a request.

mod check;
mod sources;

pub use check::{MAX_RUN, SettingError};
use regatta_types::{Mode, Scenario};
pub use sources::{ConfLine, SettingSources};

/// The requested settings of a LoadGen run. The fields and defaults are those of the official `TestSettings` of LoadGen 6.0.
#[derive(Debug, Clone, PartialEq)]
pub struct TestSettings {
    /// The scenario.
    pub scenario: Scenario,
    /// The mode.
    pub mode: Mode,

    /// SingleStream: expected latency in nanoseconds. It determines how many queries are generated.
    pub single_stream_expected_latency_ns: f64,
    /// SingleStream: the percentile that is the result, as a fraction.
    pub single_stream_target_latency_percentile: f64,

    /// MultiStream: expected latency of a query in nanoseconds. It determines how many queries are generated.
    pub multi_stream_expected_latency_ns: f64,
    /// MultiStream: the percentile of query latency that is the result, as a fraction.
    pub multi_stream_target_latency_percentile: f64,
    /// MultiStream: samples in each query.
    pub multi_stream_samples_per_query: u64,

    /// Server: mean queries per second of the Poisson arrivals.
    pub server_target_qps: f64,
    /// Server: the latency bound in nanoseconds.
    pub server_target_latency_ns: u64,
    /// Server: the fraction of queries that must meet the bound.
    pub server_target_latency_percentile: f64,
    /// Server: whether queries that are overdue together are issued as one.
    pub server_coalesce_queries: bool,
    /// Server, FindPeakPerformance: decimals of queries per second at which the search ends.
    pub server_find_peak_qps_decimals_of_precision: i32,
    /// Server, FindPeakPerformance: growth of the upper bound per step, as a fraction of the bound.
    pub server_find_peak_qps_boundary_step_size: f64,
    /// Server: number of outstanding queries above which the run ends early; 0 for no limit.
    pub server_max_async_queries: u64,
    /// Server: number of issuing threads; 0 issues from the thread that runs LoadGen.
    pub server_num_issue_query_threads: u64,

    /// Offline: expected samples per second. It determines the number of samples in the query.
    pub offline_expected_qps: f64,
    /// Whether every permutation of the set is issued completely before the next one ("equal issue").
    pub sample_concatenate_permutation: bool,

    /// Minimum duration of the run, milliseconds.
    pub min_duration_ms: u64,
    /// Duration after which the run ends early, milliseconds; 0 for no limit.
    pub max_duration_ms: u64,
    /// Minimum number of queries (Offline: samples).
    pub min_query_count: u64,
    /// Number of queries after which the run ends early; 0 for no limit.
    pub max_query_count: u64,

    /// Seed of the selection and order of loadable sets.
    pub qsl_rng_seed: u64,
    /// Seed of the order of samples in queries.
    pub sample_index_rng_seed: u64,
    /// Seed of the Server arrival times.
    pub schedule_rng_seed: u64,
    /// Seed of the selection of responses that a performance run logs.
    pub accuracy_log_rng_seed: u64,
    /// Probability that a performance run logs a response.
    pub accuracy_log_probability: f64,
    /// Target number of responses that a performance run logs. It replaces the probability unless it is 0.
    pub accuracy_log_sampling_target: u64,

    /// Whether the TEST05 seeds replace the three seeds above.
    pub test05: bool,
    /// TEST05: replaces [`qsl_rng_seed`](Self::qsl_rng_seed).
    pub test05_qsl_rng_seed: u64,
    /// TEST05: replaces [`sample_index_rng_seed`](Self::sample_index_rng_seed).
    pub test05_sample_index_rng_seed: u64,
    /// TEST05: replaces [`schedule_rng_seed`](Self::schedule_rng_seed).
    pub test05_schedule_rng_seed: u64,

    /// Whether LoadGen prints the measurement interval, for comparison with an external timer.
    pub print_timestamps: bool,
    /// Whether every sample of the performance set is issued exactly once.
    pub performance_issue_unique: bool,
    /// Whether one sample is issued repeatedly (TEST04).
    pub performance_issue_same: bool,
    /// The index of that sample in the performance set.
    pub performance_issue_same_index: u64,
    /// Replaces the library's performance sample count unless it is 0.
    pub performance_sample_count_override: u64,
    /// Number of samples of an accuracy run, unless it is 0.
    pub accuracy_sample_count_override: u64,

    /// Whether first-token and per-token latencies are measured.
    pub use_token_latencies: bool,
    /// Server: bound of the time to first token, nanoseconds.
    pub server_ttft_latency: u64,
    /// Server: bound of the time per output token, nanoseconds.
    pub server_tpot_latency: u64,
    /// Whether a token rate is inferred from the sample rate.
    pub infer_token_latencies: bool,
    /// Tokens per sample for that inference. The official default is indeterminate; here it is 0.
    pub token_latency_scaling_factor: u64,
}

impl TestSettings {
    /// Returns LoadGen's defaults for a scenario and mode.
    #[must_use]
    pub fn new(scenario: Scenario, mode: Mode) -> Self {
        Self {
            scenario,
            mode,
            ..Self::default()
        }
    }
}

impl Default for TestSettings {
    fn default() -> Self {
        Self {
            scenario: Scenario::SingleStream,
            mode: Mode::PerformanceOnly,
            single_stream_expected_latency_ns: 1_000_000.0,
            single_stream_target_latency_percentile: 0.90,
            multi_stream_expected_latency_ns: 8_000_000.0,
            multi_stream_target_latency_percentile: 0.99,
            multi_stream_samples_per_query: 8,
            server_target_qps: 1.0,
            server_target_latency_ns: 100_000_000,
            server_target_latency_percentile: 0.99,
            server_coalesce_queries: false,
            server_find_peak_qps_decimals_of_precision: 1,
            server_find_peak_qps_boundary_step_size: 1.0,
            server_max_async_queries: 0,
            server_num_issue_query_threads: 0,
            offline_expected_qps: 1.0,
            sample_concatenate_permutation: false,
            min_duration_ms: 10_000,
            max_duration_ms: 0,
            min_query_count: 100,
            max_query_count: 0,
            qsl_rng_seed: 0,
            sample_index_rng_seed: 0,
            schedule_rng_seed: 0,
            accuracy_log_rng_seed: 0,
            accuracy_log_probability: 0.0,
            accuracy_log_sampling_target: 0,
            test05: false,
            test05_qsl_rng_seed: 0,
            test05_sample_index_rng_seed: 0,
            test05_schedule_rng_seed: 0,
            print_timestamps: false,
            performance_issue_unique: false,
            performance_issue_same: false,
            performance_issue_same_index: 0,
            performance_sample_count_override: 0,
            accuracy_sample_count_override: 0,
            use_token_latencies: false,
            server_ttft_latency: 100_000_000,
            server_tpot_latency: 100_000_000,
            infer_token_latencies: false,
            token_latency_scaling_factor: 0,
        }
    }
}
