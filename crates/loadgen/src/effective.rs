//! LoadGen's effective settings (official `TestSettingsInternal`), independent of the scenario, and errors in the request.

use regatta_loadgen_conf::TestSettings;
use regatta_types::{Mode, Scenario};

/// The settings that LoadGen applies. The log lists them under `effective_`.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveSettings {
    /// The scenario.
    pub scenario: Scenario,
    /// The mode.
    pub mode: Mode,
    /// Samples per query. Offline: samples of the single query.
    pub samples_per_query: u64,
    /// Expected or scheduled queries per second; Offline: samples per second.
    pub target_qps: f64,
    /// Server: the latency bound, ns; else 0.
    pub target_latency_ns: i64,
    /// The percentile of the result, as a fraction.
    pub target_latency_percentile: f64,
    /// Largest number of outstanding queries; 0 for no limit.
    pub max_async_queries: u64,
    /// Duration for which queries are generated, ms.
    pub target_duration_ms: i64,
    /// Minimum duration of the run, ms.
    pub min_duration_ms: i64,
    /// Duration after which the run ends early, ms; 0 for no limit.
    pub max_duration_ms: i64,
    /// Minimum number of queries.
    pub min_query_count: u64,
    /// Number of queries after which the run ends early; 0 for no limit.
    pub max_query_count: u64,
    /// Minimum number of samples.
    pub min_sample_count: u64,
    /// Seed of the loadable sets.
    pub qsl_rng_seed: u64,
    /// Seed of the sample order.
    pub sample_index_rng_seed: u64,
    /// Seed of the arrival times.
    pub schedule_rng_seed: u64,
    /// Seed of the selection of logged responses.
    pub accuracy_log_rng_seed: u64,
    /// Probability that a response is logged.
    pub accuracy_log_probability: f64,
    /// Target number of logged responses.
    pub accuracy_log_sampling_target: u64,
    /// Whether LoadGen prints the measurement interval.
    pub print_timestamps: bool,
    /// Whether each sample is issued at most once.
    pub performance_issue_unique: bool,
    /// Whether one sample is issued repeatedly.
    pub performance_issue_same: bool,
    /// The index of that sample.
    pub performance_issue_same_index: u64,
    /// Samples loaded together.
    pub performance_sample_count: u64,
    /// Samples in an accuracy run.
    pub accuracy_sample_count: u64,
    /// Whether complete permutations are issued.
    pub sample_concatenate_permutation: bool,
    /// Whether token latencies are measured.
    pub use_token_latencies: bool,
    /// Bound of time to first token, ns.
    pub server_ttft_latency: i64,
    /// Bound of time per output token, ns.
    pub server_tpot_latency: i64,
    /// Whether token rates are inferred.
    pub infer_token_latencies: bool,
    /// Tokens per sample for that inference.
    pub token_latency_scaling_factor: i64,
}

/// Sample counts that the library reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryCounts {
    /// Samples in the complete set.
    pub total: u64,
    /// Samples that fit into memory together.
    pub performance: u64,
}

const NS_PER_S: f64 = 1e9;

impl EffectiveSettings {
    /// Computes the effective settings. The returned texts are the errors that LoadGen logs as `error_invalid_test_settings`. LoadGen
    /// continues in spite of them.
    #[must_use]
    pub fn new(requested: &TestSettings, library: LibraryCounts) -> (Self, Vec<String>) {
        let mut errors = Vec::new();
        let mut settings = Self::scenario_free(requested, library);
        settings.take_scenario(requested, &mut errors);
        if requested.scenario == Scenario::Offline {
            settings.coalesce_offline();
        }
        if settings.sample_concatenate_permutation && requested.scenario == Scenario::SingleStream {
            settings.round_up_to_permutations(library);
        }
        settings.min_sample_count = settings.min_query_count.wrapping_mul(settings.samples_per_query);
        settings.check_performance_issue(&mut errors);
        (settings, errors)
    }

    fn scenario_free(requested: &TestSettings, library: LibraryCounts) -> Self {
        let or_library = |count: u64, reported: u64| if count == 0 { reported } else { count };
        Self {
            scenario: requested.scenario,
            mode: requested.mode,
            samples_per_query: 1,
            target_qps: 1.0,
            target_latency_ns: 0,
            target_latency_percentile: 0.0,
            max_async_queries: 0,
            target_duration_ms: requested.min_duration_ms.cast_signed(),
            min_duration_ms: requested.min_duration_ms.cast_signed(),
            max_duration_ms: requested.max_duration_ms.cast_signed(),
            min_query_count: requested.min_query_count,
            max_query_count: requested.max_query_count,
            min_sample_count: 0,
            qsl_rng_seed: requested.qsl_rng_seed,
            sample_index_rng_seed: requested.sample_index_rng_seed,
            schedule_rng_seed: requested.schedule_rng_seed,
            accuracy_log_rng_seed: requested.accuracy_log_rng_seed,
            accuracy_log_probability: requested.accuracy_log_probability,
            accuracy_log_sampling_target: requested.accuracy_log_sampling_target,
            print_timestamps: requested.print_timestamps,
            performance_issue_unique: requested.performance_issue_unique,
            performance_issue_same: requested.performance_issue_same,
            performance_issue_same_index: requested.performance_issue_same_index,
            performance_sample_count: or_library(
                requested.performance_sample_count_override,
                library.performance,
            ),
            accuracy_sample_count: or_library(requested.accuracy_sample_count_override, library.total),
            sample_concatenate_permutation: requested.sample_concatenate_permutation,
            use_token_latencies: requested.use_token_latencies,
            server_ttft_latency: requested.server_ttft_latency.cast_signed(),
            server_tpot_latency: requested.server_tpot_latency.cast_signed(),
            infer_token_latencies: requested.infer_token_latencies,
            token_latency_scaling_factor: requested.token_latency_scaling_factor.cast_signed(),
        }
    }

    fn take_scenario(&mut self, requested: &TestSettings, errors: &mut Vec<String>) {
        let mut rate = |name: &str, requested: f64| {
            if requested >= 0.0 {
                return requested;
            }
            let (requested, used) = (regatta_mllog::format::general(requested), 1);
            errors.push(format!(
                "Invalid value for {name} requested. requested: {requested} using: {used}"
            ));
            1.0
        };
        match requested.scenario {
            Scenario::SingleStream => {
                self.target_qps = NS_PER_S / requested.single_stream_expected_latency_ns;
                self.max_async_queries = 1;
                self.target_latency_percentile = requested.single_stream_target_latency_percentile;
            }
            Scenario::MultiStream => {
                self.target_qps = NS_PER_S / requested.multi_stream_expected_latency_ns;
                self.max_async_queries = 1;
                self.target_latency_percentile = requested.multi_stream_target_latency_percentile;
                self.samples_per_query = requested.multi_stream_samples_per_query;
            }
            Scenario::Server => {
                self.target_qps = rate("server_target_qps", requested.server_target_qps);
                self.target_latency_ns = requested.server_target_latency_ns.cast_signed();
                self.target_latency_percentile = requested.server_target_latency_percentile;
                self.max_async_queries = requested.server_max_async_queries;
            }
            Scenario::Offline => {
                self.target_latency_percentile = 0.99;
                self.target_qps = rate("offline_expected_qps", requested.offline_expected_qps);
                self.max_async_queries = 1;
            }
        }
    }

    /// Offline: merges all queries into one, with 10 % more samples than the expected rate needs.
    fn coalesce_offline(&mut self) {
        let samples = to_u64(1.1 * self.target_duration_s() * self.target_qps);
        self.samples_per_query = if self.performance_issue_unique {
            self.performance_sample_count
        } else {
            self.min_query_count.max(samples)
        };
        self.min_query_count = 1;
        self.target_duration_ms = 0;
    }

    /// SingleStream with complete permutations: raises the minimum to a multiple of the library's performance set.
    fn round_up_to_permutations(&mut self, library: LibraryCounts) {
        let expected = to_u64(2.0 * self.target_duration_s() * self.target_qps);
        let count = self.min_query_count.max(expected);
        if library.performance > 0 {
            self.min_query_count = count.wrapping_add(library.performance - count % library.performance);
        }
    }

    fn target_duration_s(&self) -> f64 {
        millis_to_seconds(self.target_duration_ms)
    }

    fn check_performance_issue(&self, errors: &mut Vec<String>) {
        let (index, count) = (self.performance_issue_same_index, self.performance_sample_count);
        if self.performance_issue_same && index >= count {
            errors.push(format!(
                "Sample Idx to be repeated in performance_issue_same mode cannot be greater than loaded \
                 performance_sample_count. performance_issue_same_index: {index} performance_sample_count: {count}"
            ));
        }
        if self.performance_issue_unique && self.performance_issue_same {
            errors.push(
                "Performance_issue_unique and performance_issue_same, both cannot be true at the same time. \
                 performance_issue_unique: 1 performance_issue_same: 1"
                    .to_owned(),
            );
        }
    }

    /// Returns the probability with which a performance run logs a response. With a sampling target, it is the target divided by the
    /// expected number of samples.
    #[must_use]
    pub fn effective_accuracy_log_probability(&self) -> f64 {
        if self.accuracy_log_sampling_target == 0 {
            return self.accuracy_log_probability;
        }
        #[expect(clippy::cast_precision_loss, reason = "LoadGen computes this in doubles")]
        let mut expected = to_u64(self.target_qps * self.min_duration_ms as f64 / 1000.0);
        let minimum = if self.scenario == Scenario::Offline {
            self.min_sample_count
        } else {
            expected = expected.wrapping_mul(self.samples_per_query);
            self.min_query_count.wrapping_mul(self.samples_per_query)
        };
        #[expect(clippy::cast_precision_loss, reason = "LoadGen computes this in doubles")]
        {
            self.accuracy_log_sampling_target as f64 / expected.max(minimum) as f64
        }
    }
}

/// Converts like the official `DurationToSeconds`.
pub(crate) fn millis_to_seconds(millis: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "LoadGen computes this in doubles")]
    {
        millis as f64 / 1000.0
    }
}

/// Truncates as C++ does. Out-of-range values, which are undefined in C++, saturate.
fn to_u64(value: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "truncation is what LoadGen does"
    )]
    {
        value as u64
    }
}
