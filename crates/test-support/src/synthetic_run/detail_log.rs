//! The detail log of a synthetic run.

use regatta_loadgen::effective::EffectiveSettings;
use regatta_loadgen_conf::TestSettings;
use regatta_mllog::{format::detail, latency_keys::LatencyKeys};
use regatta_types::{Mode, Scenario};
use serde_json::{Value, json};

use super::{Figures, SyntheticRun, TOO_MANY, common_settings, log_line, parameters};

impl SyntheticRun {
    /// Formats the run's `mlperf_log_detail.txt`.
    #[must_use]
    pub fn detail_log(&self, figures: &Figures) -> String {
        let mut log = Log::default();
        head(self, figures, &mut log);
        log.time_ms = figures.seconds() * 1e3 + 5.25 + self.number as f64 / 64.0;
        let begin = 100 + self.number * 10_000_000;
        let end = begin + figures.duration_ns / 1_000_000;
        log.put("power_begin", json!(stamp(begin)));
        log.put("power_end", json!(stamp(end)));
        if self.settings.mode == Mode::PerformanceOnly {
            results(self, figures, &mut log);
        }
        log.text
    }
}

#[derive(Default)]
struct Log {
    text: String,
    time_ms: f64,
}

impl Log {
    fn put(&mut self, key: &str, value: Value) {
        self.raw(key, &value.to_string());
    }

    /// Writes a number as LoadGen formats it.
    fn float(&mut self, key: &str, value: f64) {
        self.raw(key, &detail(value));
    }

    fn raw(&mut self, key: &str, value: &str) {
        self.text += &log_line(key, value, self.time_ms);
    }
}

/// Formats a time in milliseconds after the start of the year, for example `01-31-2026 16:33:56.517`.
fn stamp(ms: u64) -> String {
    let (day, hour, minute) = (ms / 86_400_000 + 1, ms / 3_600_000 % 24, ms / 60_000 % 60);
    let (second, ms) = (ms / 1000 % 60, ms % 1000);
    assert!(day <= 31, "the runs are of January");
    format!("01-{day:02}-2026 {hour:02}:{minute:02}:{second:02}.{ms:03}")
}

fn head(run: &SyntheticRun, figures: &Figures, log: &mut Log) {
    log.put("loadgen_version", json!(run.loadgen_version));
    for key in [
        "build_date_local",
        "build_date_utc",
        "git_commit_date",
        "git_log_message",
        "git_status_message",
    ] {
        log.put(&format!("loadgen_{key}"), json!("NA"));
    }
    let begin = stamp(run.number * 10_000_000);
    let (date, time) = begin.split_once(' ').unwrap();
    let (month_day, year) = date.rsplit_once('-').unwrap();
    let time = time.split_once('.').unwrap().0;
    log.put("test_datetime", json!(format!("{year}-{month_day}T{time}Z")));
    log.put("sut_name", json!(run.sut));
    log.put("qsl_name", json!("samples"));
    log.put("qsl_reported_total_count", json!(run.library.total));
    log.put("qsl_reported_performance_count", json!(run.library.performance));
    requested(&run.settings, log);
    effective(&figures.effective, log);
    let listed = match run.library.total {
        TOO_MANY.. => 8,
        _ => figures.set.samples.len(),
    };
    let list: Vec<_> = figures
        .set
        .samples
        .iter()
        .take(listed)
        .map(ToString::to_string)
        .collect();
    log.raw("loaded_qsl_set", &format!("[{}]", list.join(",")));
    let (queries, samples, duration) = figures.generated;
    log.put("generated_query_count", json!(queries));
    log.put("generated_samples_per_query", json!(samples));
    log.put("generated_query_duration", json!(duration));
}

fn requested(s: &TestSettings, log: &mut Log) {
    log.put("requested_scenario", json!(s.scenario.as_str()));
    log.put("requested_test_mode", json!(s.mode.as_str()));
    match s.scenario {
        Scenario::SingleStream => {
            log.float(
                "requested_single_stream_expected_latency_ns",
                s.single_stream_expected_latency_ns,
            );
            let key = "requested_single_stream_target_latency_percentile";
            log.float(key, s.single_stream_target_latency_percentile);
        }
        Scenario::MultiStream => {
            log.float(
                "requested_multi_stream_expected_latency_ns",
                s.multi_stream_expected_latency_ns,
            );
            let key = "requested_multi_stream_target_latency_percentile";
            log.float(key, s.multi_stream_target_latency_percentile);
            log.put(
                "requested_multi_stream_samples_per_query",
                json!(s.multi_stream_samples_per_query),
            );
        }
        Scenario::Server => {
            log.float("requested_server_target_qps", s.server_target_qps);
            log.put(
                "requested_server_target_latency_ns",
                json!(s.server_target_latency_ns),
            );
            log.float(
                "requested_server_target_latency_percentile",
                s.server_target_latency_percentile,
            );
            log.put(
                "requested_server_max_async_queries",
                json!(s.server_max_async_queries),
            );
        }
        Scenario::Offline => log.float("requested_offline_expected_qps", s.offline_expected_qps),
    }
    for (key, value) in common_settings!(s) {
        log.put(&format!("requested_{key}"), value);
    }
    for (key, value) in [
        (
            "performance_sample_count_override",
            json!(s.performance_sample_count_override),
        ),
        (
            "accuracy_sample_count_override",
            json!(s.accuracy_sample_count_override),
        ),
        (
            "sample_concatenate_permutation",
            json!(s.sample_concatenate_permutation),
        ),
    ] {
        log.put(&format!("requested_{key}"), value);
    }
    if s.use_token_latencies {
        log.put("requested_use_token_latencies", json!(true));
        if s.scenario != Scenario::Offline {
            log.put("requested_server_ttft_latency", json!(s.server_ttft_latency));
            log.put("requested_server_tpot_latency", json!(s.server_tpot_latency));
        }
    }
}

fn effective(s: &EffectiveSettings, log: &mut Log) {
    log.put("effective_scenario", json!(s.scenario.as_str()));
    log.put("effective_test_mode", json!(s.mode.as_str()));
    log.float("effective_target_qps", s.target_qps);
    log.float("effective_target_latency_percentile", s.target_latency_percentile);
    for (key, value) in parameters(s) {
        if key != "target_qps" {
            log.put(&format!("effective_{key}"), value);
        }
    }
    log.put("effective_target_duration_ms", json!(s.target_duration_ms));
    log.put("effective_accuracy_sample_count", json!(s.accuracy_sample_count));
    log.put("effective_min_sample_count", json!(s.min_sample_count));
    log.put(
        "effective_sample_concatenate_permutation",
        json!(s.sample_concatenate_permutation),
    );
}

fn results(run: &SyntheticRun, figures: &Figures, log: &mut Log) {
    log.put("result_validity", json!("VALID"));
    let scenario = run.settings.scenario;
    if scenario == Scenario::Server {
        log.put("result_perf_constraints_met", json!(true));
        log.put("result_overlatency_query_count", json!(0));
    }
    for key in [
        "result_min_duration_met",
        "result_min_queries_met",
        "early_stopping_met",
    ] {
        log.put(key, json!(true));
    }
    let tokens = run.settings.use_token_latencies;
    let flat = |text: String| json!(text.replace('\n', " "));
    match tokens {
        true => {
            log.put(
                "early_stopping_ttft_result",
                flat(figures.stopping(run.first_token_ns)),
            );
            log.put(
                "early_stopping_tpot_result",
                flat(figures.stopping(run.later_token_ns)),
            );
        }
        false => log.put("early_stopping_result", flat(figures.stopping(figures.latency))),
    }
    log.put("result_query_count", json!(figures.queries));
    let estimate = if tokens {
        run.first_token_ns
    } else {
        figures.latency
    };
    match scenario {
        Scenario::SingleStream => {
            let rate = 1e9 / figures.latency as f64;
            log.float("result_qps_with_loadgen_overhead", rate);
            log.float("result_qps_without_loadgen_overhead", rate);
            log.put("early_stopping_latency_ss", json!(estimate));
            log.put("early_stopping_latency_ms", json!(estimate));
        }
        Scenario::MultiStream => {
            for key in LatencyKeys::QUERIES.all() {
                log.put(&key, json!(figures.latency));
            }
            log.put("early_stopping_latency_ms", json!(figures.latency));
        }
        Scenario::Server => {
            let [scheduled, completed] = figures.server_rates();
            log.float("result_scheduled_samples_per_sec", scheduled);
            log.float("result_completed_samples_per_sec", completed);
        }
        Scenario::Offline => log.float("result_samples_per_second", figures.rate()),
    }
    for key in LatencyKeys::SAMPLES.all() {
        log.put(&key, json!(figures.latency));
    }
    if tokens {
        token_results(run, figures, log);
    }
    log.put("num_errors", json!(0));
}

fn token_results(run: &SyntheticRun, figures: &Figures, log: &mut Log) {
    let tokens = (run.tokens * figures.samples) as f64;
    if run.settings.scenario == Scenario::Offline {
        return log.float("result_tokens_per_second", tokens / figures.seconds());
    }
    let (first, later) = (LatencyKeys::FIRST_TOKENS.all(), LatencyKeys::OUTPUT_TOKENS.all());
    for (first, later) in first.iter().zip(&later) {
        log.put(first, json!(run.first_token_ns));
        log.put(later, json!(run.later_token_ns));
    }
    log.float(
        "result_token_throughput",
        tokens / (figures.latency * figures.samples) as f64,
    );
    log.float("result_completed_tokens_per_second", tokens / figures.seconds());
}
