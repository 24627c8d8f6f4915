//! Tests of impossible and endless settings: they are refused with key, value, bound and hint.
#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

use regatta_loadgen_conf::{Conf, ConfKind, SettingSources, TestSettings};
use regatta_types::{Mode, Scenario};

fn refusal(scenario: Scenario, mode: Mode, lines: &str) -> Option<String> {
    let mut settings = TestSettings::new(scenario, mode);
    let conf = Conf::parse("user.conf", lines).unwrap();
    settings.apply(&conf, ConfKind::Mlperf, "m").unwrap();
    let mut sources = SettingSources::default();
    sources.add(&conf, ConfKind::Mlperf, "m", scenario);
    let error = settings.check(&sources).err()?.to_string();
    // The line is another test's.
    Some(
        error
            .split_once(": ")
            .filter(|(place, _)| place.contains(", line "))
            .map_or(error.clone(), |(_, rest)| rest.to_owned()),
    )
}

#[test]
fn every_bound_is_reported_with_key_value_and_hint() {
    let mut reported = String::new();
    for (scenario, lines) in [
        (Scenario::Offline, "*.*.min_duration = 2592000001"),
        (Scenario::Offline, "*.*.min_duration = 18446744073709551615"),
        (Scenario::Offline, "*.*.max_duration = 9223372036854775807"),
        (
            Scenario::Offline,
            "*.*.min_query_count = 4000000000\n*.*.target_qps = 1",
        ),
        (Scenario::Offline, "*.*.min_query_count = 0\n*.*.target_qps = 0"),
        (Scenario::Offline, "*.*.target_qps = -1"),
        (Scenario::Offline, "*.*.target_qps = 1e300"),
        (Scenario::Offline, "*.*.target_qps = 1e-9"),
        (
            Scenario::SingleStream,
            "*.*.min_query_count = 18446744073709551615\n*.*.target_latency = 1",
        ),
        (Scenario::SingleStream, "*.*.target_latency = 0"),
        (Scenario::SingleStream, "*.*.target_latency = 1e18"),
        (Scenario::SingleStream, "*.*.target_latency_percentile = 100"),
        (Scenario::MultiStream, "*.*.samples_per_query = 0"),
        (
            Scenario::MultiStream,
            "*.*.samples_per_query = 9223372036854775807",
        ),
        (
            Scenario::MultiStream,
            "*.*.min_query_count = 4000000000\n*.*.target_latency = 10",
        ),
        (Scenario::Server, "*.*.target_latency = 18446744073709551615"),
        (Scenario::Server, "*.*.target_qps = 1e9"),
        (Scenario::Server, "*.*.target_qps = 1e-7"),
        (Scenario::Server, "*.*.min_query_count = 4000000000"),
        (
            Scenario::Server,
            "*.*.use_token_latencies = 1\n*.*.ttft_latency = 18446744073709551615",
        ),
        (Scenario::Server, "*.*.accuracy_log_probability = 101"),
        (
            Scenario::Server,
            "*.*.performance_sample_count_override = 9223372036854775807",
        ),
        (
            Scenario::Offline,
            "*.*.accuracy_sample_count_override = 18446744073709551615",
        ),
        (
            Scenario::Server,
            "*.*.infer_token_latencies = 1\n*.*.token_latency_scaling_factor = 9223372036854775808",
        ),
    ] {
        let error = refusal(scenario, Mode::PerformanceOnly, lines).unwrap();
        assert!(
            error.contains(", but must be ") && error.contains("; hint: "),
            "{error}"
        );
        reported.push_str(&format!("{scenario}: {}\n  {error}\n", lines.replace('\n', "; ")));
    }
    insta::assert_snapshot!(reported);
}

#[test]
fn mlperf_settings_are_within_the_bounds() {
    for (scenario, lines) in [
        (
            Scenario::Offline,
            "*.*.min_query_count = 788379\n*.*.min_duration = 600000",
        ),
        (
            Scenario::Offline,
            "*.*.min_query_count = 24576\n*.*.target_qps = 0.1",
        ),
        // Nobody expects 1 sample per second, LoadGen's default, and 0 is no expectation.
        (Scenario::Offline, "*.*.min_query_count = 5000000"),
        (
            Scenario::Offline,
            "*.*.min_query_count = 24576\n*.*.target_qps = 0",
        ),
        (
            Scenario::Server,
            "*.*.min_query_count = 270336\n*.*.target_latency = 0",
        ),
        (
            Scenario::SingleStream,
            "*.*.min_query_count = 1024\n*.*.target_latency = 66000",
        ),
        (
            Scenario::MultiStream,
            "*.*.min_query_count = 270336\n*.*.target_latency = 528",
        ),
    ] {
        for mode in Mode::ALL {
            assert_eq!(refusal(scenario, mode, lines), None, "{scenario} {mode} {lines}");
        }
    }
}

/// An accuracy run has the library's length.
#[test]
fn counts_do_not_matter_to_an_accuracy_run() {
    let endless = "*.*.min_query_count = 18446744073709551615";
    for scenario in Scenario::ALL {
        assert_eq!(refusal(scenario, Mode::AccuracyOnly, endless), None);
        let endless = &format!("{endless}\n*.*.target_latency = 5\n*.*.target_qps = 5");
        for limit in ["", "\n*.*.max_query_count = 10", "\n*.*.max_duration = 1000"] {
            let lines = format!("{endless}{limit}");
            assert!(
                refusal(scenario, Mode::SubmissionRun, &lines).is_some(),
                "{scenario} {limit}"
            );
        }
    }
}

/// The message of a refused setting whose conf texts are `files`, in the order in which they are applied.
fn located_refusal(files: &[(&str, ConfKind, &str)]) -> String {
    let mut settings = TestSettings::new(Scenario::Offline, Mode::PerformanceOnly);
    let mut sources = SettingSources::default();
    for &(name, kind, text) in files {
        let conf = Conf::parse(name, text).unwrap();
        sources.add(&conf, kind, "m", Scenario::Offline);
        settings.apply(&conf, kind, "m").unwrap();
    }
    settings.check(&sources).unwrap_err().to_string()
}

#[test]
fn a_refused_setting_names_the_line_that_counts() {
    let mlperf = ("mlperf.conf", ConfKind::Mlperf, "*.*.min_duration = 600000");
    let refused = "min_duration is 2592000001 ms";
    for (text, line) in [
        ("*.*.min_duration = 2592000001", 1),
        (
            "# long\n\nm.Offline.min_duration = 2592000001\n*.*.min_duration = 1",
            3,
        ),
        ("m.Server.min_duration = 1\nm.*.min_duration = 2592000001", 2),
    ] {
        let message = located_refusal(&[mlperf, ("user.conf", ConfKind::User, text)]);
        assert!(
            message.starts_with(&format!("user.conf, line {line}: {refused}")),
            "{message}"
        );
    }
    let audit = "m.*.min_duration = 1\n*.*.min_duration = 2592000001";
    let user = ("user.conf", ConfKind::User, "*.*.min_duration = 1");
    let message = located_refusal(&[user, ("audit.config", ConfKind::Audit, audit)]);
    assert!(
        message.starts_with(&format!("audit.config, line 2: {refused}")),
        "{message}"
    );
    let defaults = located_refusal(&[("user.conf", ConfKind::User, "*.*.target_qps = 1e-9")]);
    assert!(
        defaults.starts_with("user.conf, line 1: target_qps is"),
        "{defaults}"
    );
}
