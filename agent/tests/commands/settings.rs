//! Tests of impossible settings through the binary. The agent refuses them with key, value, bound and hint before it loads an
//! engine or writes a log, also with limited memory.

use std::{fs, process::Command};

use regatta_test_support::fixture::Fixture;

use crate::support::{Ended, MLPERF_CONF};

/// Address space that the agent gets, in KiB: enough for a run, too little for billions of samples.
const MEMORY_KIB: u32 = 4 << 20;

/// Runs `bench` in a scenario with these lines in `user.conf`, within limited memory.
fn bench(fixture: &Fixture, scenario: &str, lines: &str, flags: &[&str]) -> Ended {
    fs::write(fixture.path("mlperf.conf"), MLPERF_CONF).unwrap();
    fs::write(fixture.path("user.conf"), format!("{lines}\n")).unwrap();
    let limited = format!("ulimit -v {MEMORY_KIB} && exec \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_regatta-agent")])
        .args([
            "bench",
            "--engine",
            "null",
            "--benchmark",
            "pixels",
            "--mode",
            "PerformanceOnly",
        ])
        .args(["--scenario", scenario, "--benchmark-file", "benchmark.toml"])
        .args(["--mlperf-conf", "mlperf.conf", "--user-conf", "user.conf"])
        .args(["--log-dir", "logs"])
        .args(flags)
        .current_dir(fixture.scratch())
        .output()
        .unwrap();
    Ended::from(output)
}

#[test]
fn settings_that_cannot_be_are_refused_with_key_value_and_hint() {
    const SCENARIOS: [&str; 4] = ["SingleStream", "MultiStream", "Server", "Offline"];
    const MULTI_STREAM: [&str; 1] = ["MultiStream"];
    let cases: [(&[&str], &str, &[&str]); 22] = [
        (&SCENARIOS, "min_query_count = -1", &[]),
        (&SCENARIOS, "min_query_count = 4000000000000", &[]),
        (&SCENARIOS, "min_query_count = 9223372036854775807", &[]),
        (&SCENARIOS, "min_query_count = 18446744073709551615", &[]),
        (&SCENARIOS, "min_duration = -1", &[]),
        (&SCENARIOS, "min_duration = NaN", &[]),
        (&SCENARIOS, "min_duration = inf", &[]),
        (&SCENARIOS, "min_duration = 99999999999999999999", &[]),
        (&SCENARIOS, "min_duration = 4000000000", &[]),
        (&SCENARIOS, "max_duration = 18446744073709551615", &[]),
        (&SCENARIOS, "target_qps = nan", &[]),
        (&["Server", "Offline"], "target_qps = -1", &[]),
        (&["SingleStream", "MultiStream"], "target_latency = 0", &[]),
        (
            &SCENARIOS,
            "performance_sample_count_override = 18446744073709551615",
            &[],
        ),
        (&SCENARIOS, "accuracy_log_rng_seed = 18446744073709551616", &[]),
        (&MULTI_STREAM, "samples_per_query = -1", &[]),
        (&MULTI_STREAM, "samples_per_query = -2", &[]),
        (&MULTI_STREAM, "samples_per_query = 0", &[]),
        (&MULTI_STREAM, "samples_per_query = 9223372036854775807", &[]),
        (&MULTI_STREAM, "samples_per_query = 4000000000", &[]),
        (
            &SCENARIOS,
            "max_query_count = 10",
            &["--duration", "18446744073709551615ms"],
        ),
        (
            &MULTI_STREAM,
            "max_query_count = 10",
            &["--set", "batch_size=1", "--duration", "720h1"],
        ),
    ];
    for (scenarios, line, flags) in cases {
        for scenario in scenarios {
            let fixture = Fixture::new();
            let ended = bench(&fixture, scenario, &format!("*.*.{line}"), flags);
            let what = format!("{scenario} {line} {flags:?}: {ended:?}");
            assert_eq!(ended.code, 2, "{what}");
            assert!(!fixture.path("logs/mlperf_log_summary.txt").exists(), "{what}");
            if flags.is_empty() {
                let (key, value) = line.split_once(" = ").unwrap();
                assert!(
                    ended.stderr.contains(key) && ended.stderr.contains(value),
                    "{what}"
                );
                assert!(ended.stderr.contains("hint: "), "{what}");
            } else {
                assert!(ended.stderr.contains("duration"), "{what}");
            }
        }
    }
}

/// A count that would end in time with enough memory.
#[test]
fn settings_that_need_too_much_memory_are_refused_before_allocation() {
    let quick =
        "*.*.target_qps = 1e6\n*.SingleStream.target_latency = 1e-5\n*.MultiStream.target_latency = 1e-5";
    for (scenario, line) in [
        ("SingleStream", "min_query_count = 4000000000"),
        ("MultiStream", "min_query_count = 4000000000"),
        ("Server", "min_query_count = 4000000000"),
        ("Offline", "min_query_count = 4000000000"),
        ("MultiStream", "samples_per_query = 400000000"),
        ("Server", "min_duration = 2000000000"),
    ] {
        let fixture = Fixture::new();
        let ended = bench(&fixture, scenario, &format!("{quick}\n*.*.{line}"), &[]);
        assert_eq!(ended.code, 2, "{scenario} {line}: {ended:?}");
        assert!(
            ended.stderr.contains(line) && ended.stderr.contains(" MiB of memory"),
            "{scenario} {line}: {ended:?}"
        );
        assert!(!fixture.path("logs/mlperf_log_summary.txt").exists());
    }
}

/// The run was requested and starts, but its record says that it is not a measurement.
#[test]
fn a_run_without_a_duration_is_refused() {
    for (line, message) in [
        (
            "min_duration = 0",
            "min_duration is 0 ms: the run may be VALID however short it is",
        ),
        ("min_duration = 0.5", "`*.*.min_duration` is read as an integer"),
    ] {
        let fixture = Fixture::new();
        let lines = format!("*.Offline.min_query_count = 10\n*.Offline.min_duration = 0\n*.*.{line}");
        let ended = bench(&fixture, "Offline", &lines, &[]);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(ended.stdout.contains(message), "{line}: {ended:?}");
    }
}
