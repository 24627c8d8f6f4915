//! The header of the detail log: LoadGen's version, the tested system, and the settings, in LoadGen's order.

use regatta_loadgen_conf::TestSettings;
use regatta_mllog::detail::PrintedValue;
use regatta_types::Scenario;

use super::run_log::RunLog;
use crate::{effective::EffectiveSettings, load_gen::LoadgenIdentity};

/// Logs the LoadGen's version under the official keys. Regatta's LoadGen has no official revision and logs `NA`.
pub(super) fn log_version(log: &mut RunLog, identity: &LoadgenIdentity) {
    let version = format!("{} {} @ {}", identity.name, identity.version, identity.revision);
    log.info("loadgen_version", version.as_str());
    log.info("loadgen_build_date_local", "NA");
    log.info("loadgen_build_date_utc", "NA");
    log.info("loadgen_git_commit_date", "NA");
    log.info("loadgen_git_log_message", "NA");
    log.info("loadgen_git_status_message", "NA");
    log.info("loadgen_file_sha1", PrintedValue::Names(&[]));
}

/// Logs the requested settings.
pub(super) fn log_requested(log: &mut RunLog, s: &TestSettings) {
    log.info("requested_scenario", s.scenario.as_str());
    log.info("requested_test_mode", s.mode.as_str());
    log_requested_scenario(log, s);
    log.info("requested_min_duration_ms", s.min_duration_ms);
    log.info("requested_max_duration_ms", s.max_duration_ms);
    log.info("requested_min_query_count", s.min_query_count);
    log.info("requested_max_query_count", s.max_query_count);
    log.info("requested_qsl_rng_seed", s.qsl_rng_seed);
    log.info("requested_sample_index_rng_seed", s.sample_index_rng_seed);
    log.info("requested_schedule_rng_seed", s.schedule_rng_seed);
    log.info("requested_accuracy_log_rng_seed", s.accuracy_log_rng_seed);
    log.info("requested_accuracy_log_probability", s.accuracy_log_probability);
    log.info(
        "requested_accuracy_log_sampling_target",
        s.accuracy_log_sampling_target,
    );
    log.info("requested_print_timestamps", s.print_timestamps);
    log.info("requested_performance_issue_unique", s.performance_issue_unique);
    log.info("requested_performance_issue_same", s.performance_issue_same);
    log.info(
        "requested_performance_issue_same_index",
        s.performance_issue_same_index,
    );
    log.info(
        "requested_performance_sample_count_override",
        s.performance_sample_count_override,
    );
    log.info(
        "requested_accuracy_sample_count_override",
        s.accuracy_sample_count_override,
    );
    log.info(
        "requested_sample_concatenate_permutation",
        s.sample_concatenate_permutation,
    );
    if s.use_token_latencies {
        log.info("requested_use_token_latencies", s.use_token_latencies);
        if s.scenario != Scenario::Offline {
            log.info("requested_server_ttft_latency", s.server_ttft_latency);
            log.info("requested_server_tpot_latency", s.server_tpot_latency);
        }
    }
}

fn log_requested_scenario(log: &mut RunLog, s: &TestSettings) {
    match s.scenario {
        Scenario::SingleStream => {
            log.info(
                "requested_single_stream_expected_latency_ns",
                s.single_stream_expected_latency_ns,
            );
            log.info(
                "requested_single_stream_target_latency_percentile",
                s.single_stream_target_latency_percentile,
            );
        }
        Scenario::MultiStream => {
            log.info(
                "requested_multi_stream_expected_latency_ns",
                s.multi_stream_expected_latency_ns,
            );
            log.info(
                "requested_multi_stream_target_latency_percentile",
                s.multi_stream_target_latency_percentile,
            );
            log.info(
                "requested_multi_stream_samples_per_query",
                s.multi_stream_samples_per_query,
            );
        }
        Scenario::Server => {
            log.info("requested_server_target_qps", s.server_target_qps);
            log.info("requested_server_target_latency_ns", s.server_target_latency_ns);
            log.info(
                "requested_server_target_latency_percentile",
                s.server_target_latency_percentile,
            );
            log.info("requested_server_coalesce_queries", s.server_coalesce_queries);
            log.info(
                "requested_server_find_peak_qps_decimals_of_precision",
                s.server_find_peak_qps_decimals_of_precision,
            );
            log.info(
                "requested_server_find_peak_qps_boundary_step_size",
                s.server_find_peak_qps_boundary_step_size,
            );
            log.info("requested_server_max_async_queries", s.server_max_async_queries);
            log.info(
                "requested_server_num_issue_query_threads",
                s.server_num_issue_query_threads,
            );
        }
        Scenario::Offline => log.info("requested_offline_expected_qps", s.offline_expected_qps),
    }
}

/// Logs the effective settings.
pub(super) fn log_effective(log: &mut RunLog, s: &EffectiveSettings) {
    log.info("effective_scenario", s.scenario.as_str());
    log.info("effective_test_mode", s.mode.as_str());
    log.info("effective_samples_per_query", s.samples_per_query);
    log.info("effective_target_qps", s.target_qps);
    log.info("effective_target_latency_ns", s.target_latency_ns);
    log.info("effective_target_latency_percentile", s.target_latency_percentile);
    log.info("effective_max_async_queries", s.max_async_queries);
    log.info("effective_target_duration_ms", s.target_duration_ms);
    log.info("effective_min_duration_ms", s.min_duration_ms);
    log.info("effective_max_duration_ms", s.max_duration_ms);
    log.info("effective_min_query_count", s.min_query_count);
    log.info("effective_max_query_count", s.max_query_count);
    log.info("effective_min_sample_count", s.min_sample_count);
    log.info("effective_qsl_rng_seed", s.qsl_rng_seed);
    log.info("effective_sample_index_rng_seed", s.sample_index_rng_seed);
    log.info("effective_schedule_rng_seed", s.schedule_rng_seed);
    log.info("effective_accuracy_log_rng_seed", s.accuracy_log_rng_seed);
    log.info("effective_accuracy_log_probability", s.accuracy_log_probability);
    log.info(
        "effective_accuracy_log_sampling_target",
        s.accuracy_log_sampling_target,
    );
    log.info("effective_print_timestamps", s.print_timestamps);
    log.info("effective_performance_issue_unique", s.performance_issue_unique);
    log.info("effective_performance_issue_same", s.performance_issue_same);
    log.info(
        "effective_performance_issue_same_index",
        s.performance_issue_same_index,
    );
    log.info("effective_performance_sample_count", s.performance_sample_count);
    log.info("effective_accuracy_sample_count", s.accuracy_sample_count);
    log.info(
        "effective_sample_concatenate_permutation",
        s.sample_concatenate_permutation,
    );
}
