//! Compares a run's settings with those that the round's `mlperf.conf` prescribes, key by key. Rates, expected latencies and limits that
//! only end a run early are the user's. Whether a run is long enough is decided in [`super::markers`].
//!
//! Sources: the comments in `mlperf.conf` ("User can optionally set this to higher values in user.conf" for the performance set), and the
//! table of scenarios in `inference_rules.adoc` (samples per query, percentile and latency bound of each scenario).

use std::fmt::Display;

use regatta_loadgen_conf::TestSettings;
use regatta_types::{Mode, Scenario, documents::RunSpec};

/// Returns a sentence for each setting that prevents the run from being a result of its round. `required` are the settings of `mlperf.conf`
/// alone, `used` those with `user.conf`. An audit's own settings are not part of either.
pub(super) fn departures(spec: &RunSpec, required: &TestSettings, used: &TestSettings) -> Vec<String> {
    let mut departures = Departures {
        round: &spec.round,
        found: Vec::new(),
    };
    if spec.mode != Mode::AccuracyOnly {
        departures.of_scenario(required, used);
        departures.of_samples(spec, required, used);
    }
    if matches!(spec.mode, Mode::AccuracyOnly | Mode::SubmissionRun) {
        let all = spec.benchmark.dataset.total_samples as u64;
        let count = |settings: &TestSettings| or_own(settings.accuracy_sample_count_override, all);
        departures.exactly("accuracy_sample_count_override", count(required), count(used));
    }
    departures.found
}

/// Returns the count that LoadGen uses: 0 selects the one of the data set.
const fn or_own(count_override: u64, own: u64) -> u64 {
    if count_override == 0 { own } else { count_override }
}

struct Departures<'a> {
    round: &'a str,
    found: Vec<String>,
}

impl Departures<'_> {
    fn add(&mut self, key: &str, used: impl Display, required: impl Display) {
        self.found
            .push(format!("{key} is {used}, {} requires {required}", self.round));
    }

    fn exactly<T: PartialEq + Display>(&mut self, key: &str, required: T, used: T) {
        if used != required {
            self.add(key, used, required);
        }
    }

    fn flag(&mut self, key: &str, required: bool, used: bool) {
        self.exactly(key, u8::from(required), u8::from(used));
    }

    fn at_most_ms(&mut self, key: &str, required_ns: u64, used_ns: u64) {
        if used_ns > required_ns {
            let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
            self.add(
                key,
                format!("{} ms", milliseconds(used_ns)),
                format!("at most {} ms", milliseconds(required_ns)),
            );
        }
    }

    fn percentile(&mut self, required: f64, used: f64) {
        // The conf has percent with at most two decimals.
        let percent = |fraction: f64| (fraction * 1e4).round() / 1e2;
        self.exactly("target_latency_percentile", percent(required), percent(used));
    }

    /// Compares the settings that define a scenario's metric.
    fn of_scenario(&mut self, required: &TestSettings, used: &TestSettings) {
        match required.scenario {
            Scenario::SingleStream => self.percentile(
                required.single_stream_target_latency_percentile,
                used.single_stream_target_latency_percentile,
            ),
            Scenario::MultiStream => {
                self.percentile(
                    required.multi_stream_target_latency_percentile,
                    used.multi_stream_target_latency_percentile,
                );
                self.exactly(
                    "samples_per_query",
                    required.multi_stream_samples_per_query,
                    used.multi_stream_samples_per_query,
                );
            }
            Scenario::Server => {
                self.percentile(
                    required.server_target_latency_percentile,
                    used.server_target_latency_percentile,
                );
                if required.use_token_latencies {
                    self.at_most_ms(
                        "ttft_latency",
                        required.server_ttft_latency,
                        used.server_ttft_latency,
                    );
                    self.at_most_ms(
                        "tpot_latency",
                        required.server_tpot_latency,
                        used.server_tpot_latency,
                    );
                } else {
                    let [required, used] = [required, used].map(|settings| settings.server_target_latency_ns);
                    self.at_most_ms("target_latency", required, used);
                }
            }
            // LoadGen has no percentile or bound for Offline.
            Scenario::Offline => {}
        }
        self.flag(
            "use_token_latencies",
            required.use_token_latencies,
            used.use_token_latencies,
        );
        self.flag(
            "infer_token_latencies",
            required.infer_token_latencies,
            used.infer_token_latencies,
        );
        if required.infer_token_latencies {
            let [required, used] = [required, used].map(|settings| settings.token_latency_scaling_factor);
            self.exactly("token_latency_scaling_factor", required, used);
        }
    }

    /// Compares the settings that decide which samples are issued and logged.
    fn of_samples(&mut self, spec: &RunSpec, required: &TestSettings, used: &TestSettings) {
        let own = spec.benchmark.dataset.performance_samples as u64;
        let count = |settings: &TestSettings| or_own(settings.performance_sample_count_override, own);
        // A larger performance set is allowed.
        if count(used) < count(required) {
            self.add(
                "performance_sample_count_override",
                count(used),
                format!("at least {}", count(required)),
            );
        }
        self.flag(
            "performance_issue_same",
            required.performance_issue_same,
            used.performance_issue_same,
        );
        self.flag(
            "performance_issue_unique",
            required.performance_issue_unique,
            used.performance_issue_unique,
        );
        // Issuing every sample equally often is allowed everywhere.
        if required.sample_concatenate_permutation {
            self.flag(
                "sample_concatenate_permutation",
                true,
                used.sample_concatenate_permutation,
            );
        }
        // TEST01 logs responses of a performance run, a result does not.
        self.exactly(
            "accuracy_log_sampling_target",
            required.accuracy_log_sampling_target,
            used.accuracy_log_sampling_target,
        );
    }
}
