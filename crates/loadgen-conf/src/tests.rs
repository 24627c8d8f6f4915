//! Tests of conf files through the public interface: precedence, kinds, numbers, and rejected values.

use regatta_types::{Mode, Scenario};

use super::{Conf, ConfKind, Number};
use crate::TestSettings;

fn settings(scenario: Scenario, model: &str, kind: ConfKind, text: &str) -> TestSettings {
    let mut settings = TestSettings::new(scenario, Mode::PerformanceOnly);
    settings
        .apply(&Conf::parse("t.conf", text).unwrap(), kind, model)
        .unwrap();
    settings
}

#[test]
fn nearest_entry_wins_whatever_the_order_in_the_file() {
    let lines = [
        ("*.*.min_query_count = 1", 1),
        ("resnet50.*.min_query_count = 2", 2),
        ("*.Offline.min_query_count = 3", 3),
        ("resnet50.Offline.min_query_count = 4", 4),
    ];
    for last in 0..lines.len() {
        let mut text: Vec<_> = lines[..=last].iter().map(|l| l.0).collect();
        for _ in 0..text.len() {
            text.rotate_left(1);
            let got = settings(Scenario::Offline, "resnet50", ConfKind::User, &text.join("\n"));
            assert_eq!(got.min_query_count, lines[last].1);
        }
    }
}

#[test]
fn a_later_line_replaces_an_equal_key_and_a_later_word_an_earlier_one() {
    let text = "*.*.min_duration = 1\n*.*.min_duration = 2 3";
    assert_eq!(
        settings(Scenario::Server, "x", ConfKind::User, text).min_duration_ms,
        3
    );
}

#[test]
fn seeds_are_read_from_mlperf_conf_only_with_a_warning() {
    let text = "*.*.qsl_rng_seed = 18446744073709551615\n*.*.test05 = 1\n*.*.accuracy_log_probability = 50";
    let official = settings(Scenario::Server, "x", ConfKind::Mlperf, text);
    assert_eq!((official.qsl_rng_seed, official.test05), (u64::MAX, true));
    assert!((official.accuracy_log_probability - 0.5).abs() < f64::EPSILON);

    for kind in [ConfKind::User, ConfKind::Audit] {
        let mut user = TestSettings::new(Scenario::Server, Mode::PerformanceOnly);
        let warnings = user
            .apply(&Conf::parse("user.conf", text).unwrap(), kind, "x")
            .unwrap();
        assert_eq!(user, TestSettings::new(Scenario::Server, Mode::PerformanceOnly));
        let reported: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            reported[0],
            "user.conf, line 3: `*.*.accuracy_log_probability` has no effect: LoadGen reads it from mlperf.conf only"
        );
        assert_eq!(reported.len(), 3);
    }
}

#[test]
fn an_mlperf_conf_in_the_place_of_user_conf_is_refused() {
    let text = "*.*.qsl_rng_seed = 1\n*.*.sample_index_rng_seed = 2\n*.*.schedule_rng_seed = 3\n*.Offline.target_qps = 9\n";
    let conf = Conf::parse("mine.conf", text).unwrap();
    let mut user = TestSettings::new(Scenario::Offline, Mode::PerformanceOnly);
    let refused = user.apply(&conf, ConfKind::User, "x").unwrap_err().to_string();
    assert!(
        refused.starts_with("mine.conf, line 1: `*.*.qsl_rng_seed`: this file has a round's seeds"),
        "{refused}"
    );
    // TEST05's audit.config may have them, too.
    for kind in [ConfKind::Mlperf, ConfKind::Audit] {
        user.apply(&conf, kind, "x").unwrap();
    }
}

#[test]
fn audit_config_sets_mode_and_sampling_for_the_wildcard_model() {
    let text = "# TEST01\n*.*.mode = 2\n*.*.accuracy_log_rng_seed = 720381539243781796\n\
                *.*.accuracy_log_sampling_target = 4096\nresnet50.*.min_query_count = 7\n";
    let mut audit = TestSettings::new(Scenario::SingleStream, Mode::AccuracyOnly);
    let warnings = audit
        .apply(
            &Conf::parse("audit.config", text).unwrap(),
            ConfKind::Audit,
            "resnet50",
        )
        .unwrap();
    assert_eq!(audit.mode, Mode::PerformanceOnly);
    assert_eq!(audit.accuracy_log_rng_seed, 720_381_539_243_781_796);
    assert_eq!(audit.accuracy_log_sampling_target, 4096);
    assert_eq!(audit.min_query_count, 100);
    assert_eq!(warnings.len(), 1);
}

#[test]
fn units_are_those_of_loadgen() {
    let text = "*.SingleStream.target_latency = 0.1\n*.Server.target_latency = 15\n*.Server.max_async_queries = -1\n\
                *.MultiStream.target_latency_percentile = 99.9\n*.Server.target_qps = 1e3";
    let got = settings(Scenario::SingleStream, "x", ConfKind::User, text);
    assert!((got.single_stream_expected_latency_ns - 100_000.0).abs() < 1e-6);
    assert_eq!(got.server_target_latency_ns, 15_000_000);
    assert_eq!(got.server_max_async_queries, u64::MAX);
    assert!((got.multi_stream_target_latency_percentile - 0.999).abs() < 1e-12);
    assert!((got.server_target_qps - 1000.0).abs() < 1e-9);
}

#[test]
fn numbers_are_read_as_c_reads_them() {
    for (word, integer, decimal) in [
        ("12", 12, 12.0),
        ("0x10", 16, 16.0),
        ("010", 8, 10.0),
        ("08", 0, 8.0),
        ("1.5", 1, 1.5),
        ("0.5", 0, 0.5),
        (".5", 0, 0.5),
        ("1e3", 1, 1000.0),
        ("-1", u64::MAX, -1.0),
        ("99999999999999999999", u64::MAX, 99_999_999_999_999_999_999.0),
    ] {
        let number = Number::parse(word).unwrap();
        assert_eq!(number.as_u64(), integer, "{word}");
        assert!(
            (number.as_f64() - decimal).abs() < 1e-9 * decimal.abs().max(1.0),
            "{word}"
        );
    }
    for word in ["", "x", "1x", "0x", "--1", "1,5", "true"] {
        assert_eq!(Number::parse(word), None, "{word}");
    }
}

#[test]
fn mistakes_are_reported_with_file_and_line() {
    for (line, reported) in [
        (
            "*.*.min_duration 600",
            "expected `model.scenario.key = value` with blanks around `=`, found `*.*.min_duration 600`",
        ),
        (
            "*.*.min_duration=600",
            "expected `model.scenario.key = value` with blanks around `=`, found `*.*.min_duration=600`",
        ),
        (
            "*.*.min_duration",
            "expected `model.scenario.key = value` with blanks around `=`, found `*.*.min_duration`",
        ),
        ("*.*.min_duration =", "`*.*.min_duration` has no value"),
        (
            "*.*.min_duration = ten",
            "the value of `*.*.min_duration` must be an integer or a decimal number and nothing may follow it, found `ten`",
        ),
        (
            "*.*.min_duration = 10 # s",
            "the value of `*.*.min_duration` must be an integer or a decimal number and nothing may follow it, found `#`",
        ),
    ] {
        let error = Conf::parse("user.conf", &format!("# head\n\n{line}\n")).unwrap_err();
        assert_eq!(error.to_string(), format!("user.conf, line 3: {reported}"));
    }
}

#[test]
fn an_unknown_mode_is_refused_where_it_stands() {
    let conf = Conf::parse("audit.config", "\n*.*.mode = 7").unwrap();
    let error = TestSettings::default()
        .apply(&conf, ConfKind::Audit, "x")
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("audit.config, line 2: mode must be 0"),
        "{error}"
    );
}

#[test]
fn unknown_keys_and_scenarios_are_reported() {
    let conf = Conf::parse("user.conf", "*.Sever.target_qps = 3\n*.*.min_durtion = 3\nmin_duration = 3\nwan-2.2-t2v-a14b.Offline.min_query_count = 248").unwrap();
    let warnings = TestSettings::default().apply(&conf, ConfKind::User, "x").unwrap();
    let lines: Vec<_> = warnings.iter().map(|w| w.line).collect();
    assert_eq!(lines, [2, 1, 3]);
}

/// Values that LoadGen would read as different ones: -1 as 2^64 - 1, `nan` as 0, 2 as a flag that is not set.
#[test]
fn values_that_loadgen_would_misread_are_refused_with_line() {
    let count = "must be an integer from 0 to 18446744073709551615";
    for (line, reported) in [
        ("*.*.min_duration = -1", count),
        ("*.*.min_duration = NaN", count),
        ("*.*.min_duration = inf", count),
        ("*.*.min_duration = -0.5", count),
        ("*.*.min_duration = 99999999999999999999", count),
        ("*.*.min_query_count = -1", count),
        ("m.*.max_query_count = -2", count),
        ("*.MultiStream.samples_per_query = -9223372036854775808", count),
        ("*.Server.target_latency = -1", count),
        ("*.*.accuracy_log_rng_seed = 18446744073709551616", count),
        ("*.*.mode = nan", count),
        ("*.Server.target_qps = nan", "must be a finite number"),
        ("*.SingleStream.target_latency = -inf", "must be a finite number"),
        (
            "*.Server.target_latency_percentile = inf",
            "must be a finite number",
        ),
        ("*.*.performance_issue_same = 2", "must be 0 or 1"),
        ("*.*.use_token_latencies = -1", "must be 0 or 1"),
        ("*.Server.max_async_queries = nan", "must be an integer"),
    ] {
        let conf = Conf::parse("user.conf", &format!("\n{line}\n")).unwrap();
        let error = TestSettings::default()
            .apply(&conf, ConfKind::User, "m")
            .unwrap_err();
        let (key, value) = line.split_once(" = ").unwrap();
        let start = format!("user.conf, line 2: `{key}` is {value}, but {reported}");
        assert!(error.to_string().starts_with(&start), "{error}");
        assert!(error.to_string().contains("; hint: "), "{error}");
    }
}

#[test]
fn invalid_values_for_other_models_are_ignored() {
    let got = settings(Scenario::Server, "m", ConfKind::User, "other.*.min_duration = -1");
    assert_eq!(got.min_duration_ms, 10_000);
}

#[test]
fn partly_read_entries_are_reported() {
    let text = "*.*.min_duration = 6e5\n*.Server.target_latency = 0.5\n*.SingleStream.target_latency = 0.5\n\
                *.*.min_query_count = 08\n*.Server.target_qps = 0.5\n*.*.max_duration = 0x10";
    let conf = Conf::parse("user.conf", text).unwrap();
    let mut settings = TestSettings::new(Scenario::Server, Mode::PerformanceOnly);
    let warnings = settings.apply(&conf, ConfKind::User, "m").unwrap();
    let reported: Vec<_> = warnings.iter().map(|w| (w.line, w.key.as_str())).collect();
    assert_eq!(
        reported,
        [
            (1, "*.*.min_duration"),
            (4, "*.*.min_query_count"),
            (2, "*.Server.target_latency")
        ]
    );
    assert!(warnings[0].to_string().contains("is read as an integer"));
    assert_eq!((settings.min_duration_ms, settings.max_duration_ms), (6, 16));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[ -~\n\t=#.*0-9]{0,200}") {
        if let Ok(conf) = Conf::parse("any", &text) {
            let _ = TestSettings::default().apply(&conf, ConfKind::Mlperf, "m");
        }
    }
}
