//! Checks that a detail log has every record that LoadGen writes, each with one value.
//!
//! Without a record, the checks cannot detect a contradiction to it.

use regatta_mllog::latency_keys::LatencyKeys;
use regatta_types::Scenario;

use super::logged_run::{FIX, LoggedRun};
use crate::check::{finding::Findings, rules, run_log::shown};

/// The number of missing records that a finding names. It only counts the others.
const NAMED: usize = 5;
/// The records that LoadGen has written in every run since v2.1.
const ALWAYS: [&str; 55] = [
    "loadgen_version",
    "loadgen_build_date_local",
    "loadgen_build_date_utc",
    "loadgen_git_commit_date",
    "loadgen_git_log_message",
    "loadgen_git_status_message",
    "test_datetime",
    "sut_name",
    "qsl_name",
    "qsl_reported_total_count",
    "qsl_reported_performance_count",
    "requested_scenario",
    "requested_test_mode",
    "requested_min_duration_ms",
    "requested_max_duration_ms",
    "requested_min_query_count",
    "requested_max_query_count",
    "requested_qsl_rng_seed",
    "requested_sample_index_rng_seed",
    "requested_schedule_rng_seed",
    "requested_accuracy_log_rng_seed",
    "requested_accuracy_log_probability",
    "requested_accuracy_log_sampling_target",
    "requested_print_timestamps",
    "requested_performance_issue_unique",
    "requested_performance_issue_same",
    "requested_performance_issue_same_index",
    "requested_performance_sample_count_override",
    "effective_samples_per_query",
    "effective_target_qps",
    "effective_target_latency_ns",
    "effective_target_latency_percentile",
    "effective_max_async_queries",
    "effective_target_duration_ms",
    "effective_min_duration_ms",
    "effective_max_duration_ms",
    "effective_min_query_count",
    "effective_max_query_count",
    "effective_min_sample_count",
    "effective_qsl_rng_seed",
    "effective_sample_index_rng_seed",
    "effective_schedule_rng_seed",
    "effective_accuracy_log_rng_seed",
    "effective_accuracy_log_probability",
    "effective_accuracy_log_sampling_target",
    "effective_print_timestamps",
    "effective_performance_issue_unique",
    "effective_performance_issue_same",
    "effective_performance_issue_same_index",
    "effective_performance_sample_count",
    "generated_query_count",
    "generated_samples_per_query",
    "generated_query_duration",
    "power_begin",
    "power_end",
];
/// The additional records of every performance run.
const PERFORMANCE: [&str; 5] = [
    "result_validity",
    "result_min_duration_met",
    "result_min_queries_met",
    "early_stopping_met",
    "result_query_count",
];

/// Returns the keys of a scenario's requested settings.
fn requested(scenario: Scenario) -> &'static [&'static str] {
    match scenario {
        Scenario::SingleStream => &[
            "requested_single_stream_expected_latency_ns",
            "requested_single_stream_target_latency_percentile",
        ],
        Scenario::MultiStream => &[
            "requested_multi_stream_expected_latency_ns",
            "requested_multi_stream_target_latency_percentile",
            "requested_multi_stream_samples_per_query",
        ],
        Scenario::Server => &[
            "requested_server_target_qps",
            "requested_server_target_latency_ns",
            "requested_server_target_latency_percentile",
            "requested_server_max_async_queries",
        ],
        Scenario::Offline => &["requested_offline_expected_qps"],
    }
}

/// Returns the keys of a scenario's results.
fn results(scenario: Scenario) -> &'static [&'static str] {
    match scenario {
        Scenario::SingleStream => &[
            "result_qps_with_loadgen_overhead",
            "result_qps_without_loadgen_overhead",
            "early_stopping_latency_ss",
            "early_stopping_latency_ms",
        ],
        Scenario::MultiStream => &["early_stopping_latency_ms"],
        Scenario::Server => &[
            "result_perf_constraints_met",
            "result_overlatency_query_count",
            "result_scheduled_samples_per_sec",
            "result_completed_samples_per_sec",
        ],
        Scenario::Offline => &["result_samples_per_second"],
    }
}

/// Checks that the records of a run's log are complete and consistent.
pub(super) fn check(run: &LoggedRun<'_>, findings: &mut Findings) {
    missing(run, findings);
    repeated(run, findings);
}

fn missing(run: &LoggedRun<'_>, findings: &mut Findings) {
    // Other checks report a log without a scenario or mode.
    let Some(scenario) = run.scenario() else { return };
    let performance = run.log.text("effective_test_mode") == Some("PerformanceOnly");
    let fixed = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>();
    let mut keys = fixed(&ALWAYS);
    keys.extend(fixed(requested(scenario)));
    if performance {
        keys.extend(fixed(&PERFORMANCE));
        keys.extend(LatencyKeys::SAMPLES.all());
        keys.extend(fixed(results(scenario)));
        if scenario == Scenario::MultiStream {
            keys.extend(LatencyKeys::QUERIES.all());
        }
        keys.extend(fixed(match run.log.flag("requested_use_token_latencies") {
            Some(true) => &["early_stopping_ttft_result", "early_stopping_tpot_result"][..],
            _ => &["early_stopping_result"],
        }));
    }
    keys.retain(|key| run.log.value(key).is_none());
    let mut missing = keys;
    if run.log.loaded_set.is_none() {
        missing.push("loaded_qsl_set".to_owned());
    }
    if missing.is_empty() {
        return;
    }
    let named = missing.get(..NAMED.min(missing.len())).unwrap_or_default();
    let more = match missing.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!(
        "LoadGen writes these records in every run, and they are missing: {}{more}",
        named.join(", ")
    );
    findings.error(rules::LOG, run.path, text, FIX);
}

/// Checks that each key has one value. An accuracy run repeats `power_*` and `generated_*` keys for each set of samples.
fn repeated(run: &LoggedRun<'_>, findings: &mut Findings) {
    let accuracy = run.log.text("effective_test_mode") != Some("PerformanceOnly");
    let of_series = |key: &str| key.starts_with("power_") || key.starts_with("generated_");
    for repeat in &run.log.repeats {
        if accuracy && of_series(&repeat.key) {
            continue;
        }
        let text = format!(
            "{} is {} here, {} before",
            repeat.key,
            shown(&repeat.value),
            run.found(&repeat.key)
        );
        findings.error(rules::LOG, (run.path, Some(repeat.line)), text, FIX);
    }
}
