//! Compares the effective settings in a run's log with those that LoadGen derives from the requested settings.
//!
//! This module does not check what the round requires of the settings.

use std::fmt;

use regatta_loadgen::effective::{EffectiveSettings, LibraryCounts};
use regatta_loadgen_conf::TestSettings;
use regatta_mllog::read::Value;
use regatta_types::{Mode, Scenario};

use super::logged_run::{LoggedRun, SIX_DIGITS};
use crate::check::{finding::Findings, rules, run_log::shown};

/// The largest plausible count or duration. Larger values would overflow.
const MAX: u64 = 1 << 42;

/// The settings that a run requested, as far as its log has them.
pub(super) struct Requested {
    pub(super) settings: TestSettings,
    pub(super) library: LibraryCounts,
    /// Whether the log says if whole permutations were issued. LoadGen logs this since v5.0.
    pub(super) permutation_known: bool,
}

/// Returns the requested settings from the log, or `None` if the log does not have one of them.
pub(super) fn requested(run: &LoggedRun<'_>) -> Option<Requested> {
    let scenario = run.scenario()?;
    let mode = run.log.text("effective_test_mode")?.parse::<Mode>().ok()?;
    let count = |key: &str| run.count(key).filter(|count| *count <= MAX);
    let flag = |key: &str| run.log.flag(key);
    let mut settings = TestSettings::new(scenario, mode);
    settings.min_duration_ms = count("requested_min_duration_ms")?;
    settings.max_duration_ms = count("requested_max_duration_ms")?;
    settings.min_query_count = count("requested_min_query_count")?;
    settings.max_query_count = count("requested_max_query_count")?;
    settings.qsl_rng_seed = run.count("requested_qsl_rng_seed")?;
    settings.sample_index_rng_seed = run.count("requested_sample_index_rng_seed")?;
    settings.schedule_rng_seed = run.count("requested_schedule_rng_seed")?;
    settings.accuracy_log_rng_seed = run.count("requested_accuracy_log_rng_seed")?;
    settings.accuracy_log_probability = run.number("requested_accuracy_log_probability")?;
    settings.accuracy_log_sampling_target = count("requested_accuracy_log_sampling_target")?;
    settings.print_timestamps = flag("requested_print_timestamps")?;
    settings.performance_issue_unique = flag("requested_performance_issue_unique")?;
    settings.performance_issue_same = flag("requested_performance_issue_same")?;
    settings.performance_issue_same_index = count("requested_performance_issue_same_index")?;
    settings.performance_sample_count_override = count("requested_performance_sample_count_override")?;
    settings.accuracy_sample_count_override =
        count("requested_accuracy_sample_count_override").unwrap_or_default();
    let permutation = flag("requested_sample_concatenate_permutation");
    settings.sample_concatenate_permutation = permutation.unwrap_or_default();
    of_scenario(run, &mut settings)?;
    let library = LibraryCounts {
        total: count("qsl_reported_total_count")?,
        performance: count("qsl_reported_performance_count")?,
    };
    Some(Requested {
        settings,
        library,
        permutation_known: permutation.is_some(),
    })
}

fn of_scenario(run: &LoggedRun<'_>, settings: &mut TestSettings) -> Option<()> {
    let number = |key: &str| run.number(key);
    let count = |key: &str| run.count(key).filter(|count| *count <= MAX);
    match settings.scenario {
        Scenario::SingleStream => {
            settings.single_stream_expected_latency_ns =
                number("requested_single_stream_expected_latency_ns")?;
            settings.single_stream_target_latency_percentile =
                number("requested_single_stream_target_latency_percentile")?;
        }
        Scenario::MultiStream => {
            settings.multi_stream_expected_latency_ns = number("requested_multi_stream_expected_latency_ns")?;
            settings.multi_stream_target_latency_percentile =
                number("requested_multi_stream_target_latency_percentile")?;
            settings.multi_stream_samples_per_query = count("requested_multi_stream_samples_per_query")?;
        }
        Scenario::Server => {
            settings.server_target_qps = number("requested_server_target_qps")?;
            settings.server_target_latency_ns = count("requested_server_target_latency_ns")?;
            settings.server_target_latency_percentile = number("requested_server_target_latency_percentile")?;
            settings.server_max_async_queries = count("requested_server_max_async_queries")?;
        }
        Scenario::Offline => settings.offline_expected_qps = number("requested_offline_expected_qps")?,
    }
    Some(())
}

impl Requested {
    /// Returns the possible values of "whole permutations were issued".
    ///
    /// If the log does not have the setting, SingleStream's minimum query count determines it. In other scenarios both values
    /// remain possible.
    pub(super) fn permutation(&self, run: &LoggedRun<'_>) -> Vec<bool> {
        let requested = self.settings.sample_concatenate_permutation;
        match (self.permutation_known, self.settings.scenario) {
            (true, _) => vec![requested],
            (false, Scenario::SingleStream) => vec![!departures(run, self, false).is_empty()],
            (false, _) => vec![false, true],
        }
    }
}

/// The expected value of a record.
enum Expected {
    /// Exactly this value.
    Value(Value),
    /// A number and the allowed deviation from it.
    Near(f64, f64),
}

impl Expected {
    fn is(&self, found: &Value) -> bool {
        match self {
            Self::Value(value) => value == found,
            Self::Near(number, slack) => found
                .as_f64()
                .is_some_and(|found| (found - number).abs() <= *slack),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => f.write_str(&shown(value)),
            Self::Near(number, _) => write!(f, "{number}"),
        }
    }
}

/// Checks the effective settings of a run.
pub(super) fn check(run: &LoggedRun<'_>, requested: &Requested, findings: &mut Findings) {
    for key in ["scenario", "test_mode"] {
        let [requested, used] = ["requested", "effective"].map(|start| format!("{start}_{key}"));
        if run
            .log
            .value(&requested)
            .is_some_and(|requested| run.log.value(&used) != Some(requested))
        {
            let text = format!(
                "{used} is {}, {requested} is {}",
                run.found(&used),
                run.found(&requested)
            );
            run.error(findings, rules::SETTINGS, &used, text);
        }
    }
    let found = departures(run, requested, requested.settings.sample_concatenate_permutation);
    // If the log does not say whether whole permutations were issued, both values are accepted.
    if !requested.permutation_known && departures(run, requested, true).is_empty() {
        return;
    }
    for (key, expected) in found {
        let text = format!(
            "{key} is {}, but LoadGen derives {expected} from the requested settings",
            run.found(key)
        );
        run.error(findings, rules::SETTINGS, key, text);
    }
}

/// Returns the logged effective settings that differ from those derived from the request, with the expected values.
fn departures(
    run: &LoggedRun<'_>,
    requested: &Requested,
    permutation: bool,
) -> Vec<(&'static str, Expected)> {
    let mut settings = requested.settings.clone();
    settings.sample_concatenate_permutation = permutation;
    let (effective, _) = EffectiveSettings::new(&settings, requested.library);
    let mut list = expected(&effective, requested.library);
    if requested.permutation_known {
        let key = "effective_sample_concatenate_permutation";
        list.push((key, Expected::Value(Value::Bool(permutation))));
    }
    let both = ["effective_min_query_count", "effective_samples_per_query"].map(|key| run.count(key));
    if let [Some(queries), Some(samples)] = both {
        let product = Value::Unsigned(queries.wrapping_mul(samples));
        list.push(("effective_min_sample_count", Expected::Value(product)));
    }
    // `records` reports missing records.
    list.retain(|(key, expected)| run.log.value(key).is_some_and(|found| !expected.is(found)));
    list
}

/// Returns the records that LoadGen logs for its effective settings.
fn expected(s: &EffectiveSettings, library: LibraryCounts) -> Vec<(&'static str, Expected)> {
    let count = |count: u64| Expected::Value(Value::Unsigned(count));
    let flag = |flag: bool| Expected::Value(Value::Bool(flag));
    let time = |time: i64| Expected::Value(Value::Unsigned(time.cast_unsigned()));
    let rate = |rate: f64| Expected::Near(rate, rate.abs() * SIX_DIGITS);
    // LoadGen computes these counts from a rate that has more than the six logged digits, and rounds them down.
    let from_rate = |count: u64, step: u64| {
        let slack = count as f64 * SIX_DIGITS + 1.0 + step as f64;
        Expected::Near(count as f64, slack)
    };
    let samples = match s.scenario {
        Scenario::Offline => from_rate(s.samples_per_query, 0),
        _ => count(s.samples_per_query),
    };
    let rounded_up = s.sample_concatenate_permutation && s.scenario == Scenario::SingleStream;
    let queries = match rounded_up {
        true => from_rate(s.min_query_count, library.performance),
        false => count(s.min_query_count),
    };
    vec![
        ("effective_samples_per_query", samples),
        ("effective_target_qps", rate(s.target_qps)),
        ("effective_target_latency_ns", time(s.target_latency_ns)),
        (
            "effective_target_latency_percentile",
            rate(s.target_latency_percentile),
        ),
        ("effective_max_async_queries", count(s.max_async_queries)),
        ("effective_target_duration_ms", time(s.target_duration_ms)),
        ("effective_min_duration_ms", time(s.min_duration_ms)),
        ("effective_max_duration_ms", time(s.max_duration_ms)),
        ("effective_min_query_count", queries),
        ("effective_max_query_count", count(s.max_query_count)),
        ("effective_qsl_rng_seed", count(s.qsl_rng_seed)),
        ("effective_sample_index_rng_seed", count(s.sample_index_rng_seed)),
        ("effective_schedule_rng_seed", count(s.schedule_rng_seed)),
        ("effective_accuracy_log_rng_seed", count(s.accuracy_log_rng_seed)),
        (
            "effective_accuracy_log_probability",
            rate(s.accuracy_log_probability),
        ),
        (
            "effective_accuracy_log_sampling_target",
            count(s.accuracy_log_sampling_target),
        ),
        ("effective_print_timestamps", flag(s.print_timestamps)),
        (
            "effective_performance_issue_unique",
            flag(s.performance_issue_unique),
        ),
        ("effective_performance_issue_same", flag(s.performance_issue_same)),
        (
            "effective_performance_issue_same_index",
            count(s.performance_issue_same_index),
        ),
        (
            "effective_performance_sample_count",
            count(s.performance_sample_count),
        ),
        ("effective_accuracy_sample_count", count(s.accuracy_sample_count)),
    ]
}
