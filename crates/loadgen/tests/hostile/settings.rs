//! Tests of every key with every difficult value. Such a run is refused before it writes a log, or it ends within the queries
//! that its settings allow, independent of the clock.

use std::{
    error::Error as _,
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

use proptest::prelude::*;
use regatta_loadgen::{
    NativeLoadGen,
    effective::LibraryCounts,
    load_gen::{LoadGen, LoadgenError},
    request::{ConfText, RunRequest},
    sut::{Completer, QuerySample},
};
use regatta_loadgen_conf::TestSettings;
use regatta_types::{Mode, Scenario};

use crate::{Sut, answer_all, run, samples};

/// Every key that a LoadGen reads.
const KEYS: [&str; 33] = [
    "mode",
    "use_token_latencies",
    "ttft_latency",
    "tpot_latency",
    "infer_token_latencies",
    "token_latency_scaling_factor",
    "target_latency_percentile",
    "samples_per_query",
    "target_latency",
    "target_qps",
    "performance_issue_unique",
    "performance_issue_same",
    "performance_issue_same_index",
    "sample_concatenate_permutation",
    "coalesce_queries",
    "max_async_queries",
    "min_duration",
    "max_duration",
    "min_query_count",
    "max_query_count",
    "performance_sample_count_override",
    "accuracy_sample_count_override",
    "print_timestamps",
    "accuracy_log_rng_seed",
    "accuracy_log_sampling_target",
    "qsl_rng_seed",
    "sample_index_rng_seed",
    "schedule_rng_seed",
    "accuracy_log_probability",
    "test05",
    "test05_qsl_rng_seed",
    "test05_sample_index_rng_seed",
    "test05_schedule_rng_seed",
];

const VALUES: [&str; 20] = [
    "-1",
    "-2",
    "-0",
    "0",
    "1",
    "7",
    "0.5",
    "1e3",
    "08",
    "0x7fffffffffffffff",
    "4000000000",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "99999999999999999999",
    "NaN",
    "inf",
    "1e300",
    "1e-300",
    "",
];

/// Runs that the clock makes longer are checked, and not run.
const MAX_MS: u64 = 10;

/// Returns a quick run, changed by these lines.
fn request(scenario: Scenario, mode: Mode, lines: &[(&str, &str)], dir: &std::path::Path) -> RunRequest {
    let mut text = String::from(
        "*.*.min_duration = 1\n*.*.min_query_count = 2\n*.*.target_qps = 1000\n*.*.target_latency = 1\n",
    );
    for (key, value) in lines {
        writeln!(text, "*.*.{key} = {value}").unwrap();
    }
    let mut request = RunRequest::new("m", scenario, mode, dir);
    request.mlperf_conf = Some(ConfText::new("test.conf", text));
    request
}

/// Queries that a run may issue at most, by its settings. Offline's one query counts by its samples.
fn budget(settings: &TestSettings, library: LibraryCounts) -> u64 {
    let per_second = match settings.scenario {
        Scenario::SingleStream => 1e9 / settings.single_stream_expected_latency_ns,
        Scenario::MultiStream => 1e9 / settings.multi_stream_expected_latency_ns,
        Scenario::Server => settings.server_target_qps,
        Scenario::Offline => settings.offline_expected_qps,
    };
    let padding = match settings.scenario {
        Scenario::MultiStream => settings.multi_stream_samples_per_query,
        _ => 0,
    };
    let whole_library = library.total + padding;
    if settings.mode == Mode::AccuracyOnly {
        return whole_library;
    }
    // Twice the duration is generated; in Server a Poisson process may exceed its mean.
    let by_time = 2.0 * settings.min_duration_ms as f64 / 1e3 * per_second;
    let measured = settings.min_query_count + by_time as u64 + whole_library;
    2 * measured + 100
}

/// Checks that settings are refused with a hint, or accepted and, if it `runs`, executed within the budget.
fn check(scenario: Scenario, mode: Mode, lines: &[(&str, &str)], runs: bool) {
    let dir = tempfile::tempdir().unwrap();
    let request = request(scenario, mode, lines, dir.path());
    let library = LibraryCounts {
        total: 64,
        performance: 64,
    };
    let what = || format!("{scenario} {mode} {lines:?}");
    match NativeLoadGen.check(&request, library) {
        Ok(()) if runs => run_within_budget(&request, library, &what),
        Ok(()) => {}
        Err(error) => {
            let message = error
                .source()
                .map_or_else(|| error.to_string(), ToString::to_string);
            let helps = match error {
                LoadgenError::Conf(_) => message.starts_with("test.conf, line "),
                _ => message.contains("hint: "),
            };
            assert!(helps, "{}: {message}", what());
        }
    }
}

fn run_within_budget(request: &RunRequest, library: LibraryCounts, what: &dyn Fn() -> String) {
    let settings = request.resolve().unwrap().settings;
    let budget = budget(&settings, library);
    // A submission run has both passes.
    let whole = library.total;
    let quick = settings.scenario != Scenario::Server || settings.server_target_qps >= 1000.0;
    if settings.min_duration_ms > MAX_MS
        || budget > 20_000
        || !quick
        || settings.mode == Mode::FindPeakPerformance
    {
        return;
    }
    let issued = AtomicU64::new(0);
    let sut = Sut(|samples: &[QuerySample], completer: &Completer| {
        let queries = if settings.scenario == Scenario::Offline {
            samples.len() as u64
        } else {
            1
        };
        if issued.fetch_add(queries, Ordering::Relaxed) + queries > budget + whole {
            return Err("over its budget".into());
        }
        answer_all(samples, completer)
    });
    let outcome = run(&sut, &samples(), request).map_err(|error| format!("{}: {error}", what()));
    let outcome = outcome.unwrap();
    // This SUT has no first tokens, which some of the settings require.
    let endless = ["over its budget", "panicked", "stalled"];
    let found = outcome
        .faults
        .iter()
        .find(|fault| endless.iter().any(|word| fault.contains(word)));
    assert_eq!(found, None, "{}", what());
}

#[test]
fn every_key_with_every_value_is_refused_or_ends() {
    for (key_number, key) in KEYS.iter().enumerate() {
        for (value_number, value) in VALUES.iter().enumerate() {
            for (number, scenario) in Scenario::ALL.into_iter().enumerate() {
                // All are checked, and a third of them executed, which is quick enough for a test.
                let runs = (key_number + value_number + number) % 3 == 0;
                check(scenario, Mode::PerformanceOnly, &[(key, value)], runs);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_conf_makes_a_run_without_end(
        scenario in 0..4_usize,
        mode in 0..4_usize,
        lines in proptest::collection::vec((0..KEYS.len(), 0..VALUES.len()), 1..5),
    ) {
        let lines: Vec<_> = lines.into_iter().map(|(key, value)| (KEYS[key], VALUES[value])).collect();
        check(Scenario::ALL[scenario], Mode::ALL[mode], &lines, true);
    }
}

/// Settings that no conf can set.
#[test]
fn overrides_have_bounds_too() {
    let refused = |change: fn(&mut RunRequest)| {
        let mut request = request(
            Scenario::Server,
            Mode::FindPeakPerformance,
            &[],
            std::path::Path::new("."),
        );
        change(&mut request);
        let library = LibraryCounts {
            total: 64,
            performance: 64,
        };
        let error = NativeLoadGen.check(&request, library).unwrap_err().to_string();
        assert!(
            error.contains(", but must be ") && error.contains("hint: "),
            "{error}"
        );
    };
    refused(|request| request.overrides.min_duration = Some(std::time::Duration::MAX));
    refused(|request| request.overrides.max_duration = Some(std::time::Duration::MAX));
    refused(|request| request.overrides.min_query_count = Some(u64::MAX));
    refused(|request| request.overrides.server_issue_threads = Some(u64::MAX));
    refused(|request| request.overrides.find_peak_step = Some(0.0));
    refused(|request| request.overrides.find_peak_step = Some(f64::NAN));
    refused(|request| request.overrides.find_peak_decimals = Some(i32::MAX));
    refused(|request| request.overrides.find_peak_decimals = Some(i32::MIN));
}

/// A count too large for memory is reported with the setting that requires it.
#[test]
fn settings_that_need_too_much_memory_are_refused() {
    let library = LibraryCounts {
        total: 64,
        performance: 64,
    };
    for scenario in Scenario::ALL {
        let lines = [
            ("min_query_count", "4000000000000"),
            ("target_qps", "1e8"),
            ("target_latency", "0.00001"),
        ];
        let request = request(scenario, Mode::PerformanceOnly, &lines, std::path::Path::new("."));
        let error = NativeLoadGen.check(&request, library).unwrap_err().to_string();
        assert!(error.contains("min_query_count = 4000000000000"), "{error}");
        assert!(error.contains("hint: "), "{error}");
    }
}
