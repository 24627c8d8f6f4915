//! Tests of complete runs of the MLCommons LoadGen through the trait, with a SUT that answers at once.

use std::{collections::BTreeSet, path::Path, sync::Mutex, time::Duration};

use regatta_loadgen::{
    load_gen::{LoadGen, LoadgenError, NoObserver, Phase, RunObserver},
    outcome::Outcome,
    request::RunRequest,
    sut::{Completer, Query, QuerySampleResponse, SutError, SystemUnderTest},
    timing::Timing,
};
use regatta_mllog::read::{Value, accuracy_file, detail_file};
use regatta_test_support::null_sut::{Null, Samples, conf};
use regatta_types::{Mode, Scenario};
use sha2::{Digest as _, Sha256};

use crate::fresh_plugin;

const SEEDS: &str = "*.*.qsl_rng_seed = 1\n*.*.sample_index_rng_seed = 2\n*.*.schedule_rng_seed = 3\n";

fn request(scenario: Scenario, mode: Mode, logs: &Path) -> RunRequest {
    let mut request = RunRequest::new("resnet50", scenario, mode, logs);
    request.mlperf_conf = Some(conf(SEEDS));
    request.user_conf = Some(conf("*.Server.target_qps = 2000\n*.Offline.target_qps = 4000\n"));
    request.overrides.min_duration = Some(Duration::from_millis(50));
    request.overrides.min_query_count = Some(64);
    request
}

fn run(version: &str, request: &RunRequest, sut: &Null, qsl: &Samples) -> Option<Outcome> {
    let plugin = fresh_plugin(version)?;
    Some(
        plugin
            .loadgen_as_requested()
            .run(sut, qsl, request, &NoObserver)
            .unwrap(),
    )
}

/// Checks that the outcome has the detail log's `effective_*` settings.
fn assert_effective(outcome: &Outcome, logs: &Path) {
    let detail = detail_file(&logs.join("mlperf_log_detail.txt")).unwrap();
    let value = |key: &str| {
        detail
            .value(key)
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("no {key}"))
    };
    let effective = &outcome.effective;
    assert_eq!(value("effective_samples_per_query"), effective.samples_per_query);
    assert_eq!(value("effective_min_query_count"), effective.min_query_count);
    assert_eq!(value("effective_min_sample_count"), effective.min_sample_count);
    assert_eq!(value("effective_qsl_rng_seed"), effective.qsl_rng_seed);
    assert_eq!(
        value("effective_sample_index_rng_seed"),
        effective.sample_index_rng_seed
    );
    assert_eq!(
        value("effective_performance_sample_count"),
        effective.performance_sample_count
    );
    assert_eq!(
        value("effective_accuracy_sample_count"),
        effective.accuracy_sample_count
    );
    let version = detail
        .value("loadgen_version")
        .and_then(Value::as_str)
        .unwrap()
        .to_owned();
    assert_eq!(
        version,
        format!("{} @ {}", outcome.identity.version, outcome.identity.revision)
    );
}

#[test]
fn every_scenario_measures_and_leaves_its_logs() {
    for scenario in Scenario::ALL {
        let logs = tempfile::tempdir().unwrap();
        let (sut, qsl) = (
            Null {
                remember: true,
                ..Null::default()
            },
            Samples::new(100, 40),
        );
        let request = request(scenario, Mode::PerformanceOnly, logs.path());
        let Some(outcome) = run("6.0.17", &request, &sut, &qsl) else {
            return;
        };
        assert_eq!(outcome.faults, Vec::<String>::new(), "{scenario}");
        assert_effective(&outcome, logs.path());
        let performance = outcome.performance.expect("a measurement");
        let queries = sut.queries.lock().unwrap();
        let samples: usize = queries.iter().map(Vec::len).sum();
        assert_eq!(
            (performance.issued.queries, performance.issued.samples),
            (queries.len() as u64, samples as u64)
        );
        assert!(performance.metric.value > 0.0 && performance.latency.max >= performance.latency.min);
        assert_eq!(
            performance.latency.percentiles.len(),
            6,
            "{:?}",
            performance.latency
        );
        let widths: BTreeSet<_> = queries.iter().map(Vec::len).collect();
        match scenario {
            Scenario::SingleStream | Scenario::Server => assert_eq!(widths, BTreeSet::from([1])),
            Scenario::MultiStream => assert_eq!(widths, BTreeSet::from([8])),
            Scenario::Offline => assert_eq!(queries.len(), 1),
        }
        assert!(
            qsl.loaded.lock().unwrap().is_empty(),
            "what was loaded is unloaded"
        );
        assert!(
            outcome.log_files.iter().all(|f| f.is_file()),
            "{:?}",
            outcome.log_files
        );
    }
}

#[test]
fn an_accuracy_run_asks_for_every_sample_once_and_logs_the_answers_bytes() {
    let logs = tempfile::tempdir().unwrap();
    let sut = Null {
        remember: true,
        ..Null::default()
    };
    let request = request(Scenario::Offline, Mode::AccuracyOnly, logs.path());
    let Some(outcome) = run("6.0.17", &request, &sut, &Samples::new(100, 30)) else {
        return;
    };
    assert_eq!((outcome.valid, outcome.performance), (None, None));
    assert_eq!(outcome.accuracy.map(|a| (a.queries, a.samples)), Some((4, 100)));
    let entries: Vec<_> = accuracy_file(&logs.path().join("mlperf_log_accuracy.json"))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let indices: BTreeSet<_> = entries.iter().map(|e| e.qsl_idx).collect();
    assert_eq!(indices, (0..100).collect());
    for entry in entries {
        assert_eq!(entry.data, entry.qsl_idx.to_le_bytes());
    }
}

#[test]
fn submission_run_reports_windows_of_both_parts() {
    #[derive(Default)]
    struct Windows(std::sync::Mutex<Vec<String>>);
    impl RunObserver for Windows {
        fn on_window_begin(&self, phase: Phase) {
            self.0.lock().unwrap().push(format!("+{phase:?}"));
        }
        fn on_window_end(&self, phase: Phase) {
            self.0.lock().unwrap().push(format!("-{phase:?}"));
        }
    }
    let logs = tempfile::tempdir().unwrap();
    let Some(plugin) = fresh_plugin("6.0.17") else {
        return;
    };
    let windows = Windows::default();
    let request = request(Scenario::MultiStream, Mode::SubmissionRun, logs.path());
    let loadgen = plugin.loadgen_as_requested();
    let outcome = loadgen
        .run(&Null::default(), &Samples::new(64, 32), &request, &windows)
        .unwrap();
    assert_eq!(outcome.accuracy.unwrap().samples, 64);
    assert!(outcome.performance.unwrap().issued.samples >= 64 * 8);
    let events = windows.0.lock().unwrap().join(" ");
    let set = |n| format!("+Accuracy {{ set: {n}, sets: 2 }} -Accuracy {{ set: {n}, sets: 2 }}");
    assert_eq!(events, format!("{} {} +Performance -Performance", set(0), set(1)));
}

#[test]
fn the_compiled_in_conf_rules_and_another_is_refused() {
    let Some(plugin) = fresh_plugin("6.0.17") else {
        return;
    };
    let compiled = plugin.mlperf_conf().expect("6.0 has a conf compiled in");
    let digest: String = Sha256::digest(compiled.as_bytes())
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(
        plugin.build_info().mlperf_conf_sha256.as_deref(),
        Some(digest.as_str())
    );
    assert!(!plugin.build_info().submittable && plugin.build_info().git_revision == "NA");

    let logs = tempfile::tempdir().unwrap();
    let mut other = request(Scenario::SingleStream, Mode::PerformanceOnly, logs.path());
    other.user_conf = None;
    let loadgen = plugin.loadgen();
    let (sut, qsl) = (Null::default(), Samples::new(2000, 1500));
    let refused = loadgen.run(&sut, &qsl, &other, &NoObserver).unwrap_err();
    assert!(matches!(refused, LoadgenError::Settings { .. }), "{refused}");
    assert!(
        refused.to_string().contains("qsl_rng_seed is") && refused.to_string().contains("test.conf"),
        "{refused}"
    );

    // The same conf is no contradiction; the user's conf may tune but not seed.
    let mut same = other.clone();
    same.mlperf_conf = Some(conf(&compiled));
    same.user_conf = Some(conf("*.SingleStream.target_latency = 0.002\n"));
    let outcome = loadgen.run(&sut, &qsl, &same, &NoObserver).unwrap();
    assert_eq!(
        outcome.requested.single_stream_expected_latency_ns.to_bits(),
        2000.0_f64.to_bits()
    );
    assert_eq!(
        outcome.requested.performance_sample_count_override, 1024,
        "resnet50's, from the compiled-in conf"
    );
    assert_effective(&outcome, logs.path());

    // LoadGen counts its conf files in a static: a second user.conf would silently lose the compiled-in one.
    let second = loadgen.run(&sut, &qsl, &same, &NoObserver).unwrap_err();
    assert!(
        second.to_string().contains("one user.conf per process"),
        "{second}"
    );
}

#[test]
fn an_audit_config_applies_when_it_is_requested() {
    let logs = tempfile::tempdir().unwrap();
    let sut = Null {
        remember: true,
        ..Null::default()
    };
    let mut audited = request(Scenario::SingleStream, Mode::PerformanceOnly, logs.path());
    audited.audit_config = Some(conf(
        "*.*.performance_issue_same = 1\n*.*.performance_issue_same_index = 3\n*.*.min_query_count = 20\n",
    ));
    let Some(outcome) = run("6.0.17", &audited, &sut, &Samples::new(100, 40)) else {
        return;
    };
    assert!(outcome.requested.performance_issue_same);
    assert_eq!(outcome.requested.min_query_count, 20);
    assert_effective(&outcome, logs.path());
    let issued: BTreeSet<_> = sut.queries.lock().unwrap().concat().into_iter().collect();
    assert_eq!(issued.len(), 1);
}

#[test]
fn server_issues_from_the_requested_number_of_threads_once_per_process() {
    let logs = tempfile::tempdir().unwrap();
    let Some(plugin) = fresh_plugin("6.0.17") else {
        return;
    };
    let mut threaded = request(Scenario::Server, Mode::PerformanceOnly, logs.path());
    threaded.overrides.server_issue_threads = Some(2);
    let loadgen = plugin.loadgen_as_requested();
    let (sut, qsl) = (
        Null {
            remember: true,
            ..Null::default()
        },
        Samples::new(100, 40),
    );
    let outcome = loadgen.run(&sut, &qsl, &threaded, &NoObserver).unwrap();
    assert_eq!(outcome.faults, Vec::<String>::new());
    assert_eq!(
        outcome.performance.unwrap().issued.queries,
        sut.queries.lock().unwrap().len() as u64
    );
    let again = loadgen.run(&sut, &qsl, &threaded, &NoObserver).unwrap_err();
    assert!(again.to_string().contains("first run only"), "{again}");
}

/// LoadGen's own thread issues. The settings of the timing thread apply to it, or to every issue thread.
#[test]
fn the_thread_that_issues_is_the_timing_thread() {
    for threads in [None, Some(2)] {
        let logs = tempfile::tempdir().unwrap();
        let mut request = request(Scenario::Server, Mode::PerformanceOnly, logs.path());
        request.overrides.server_issue_threads = threads;
        request.issue.timing.cpu = Some(usize::MAX);
        request.issue.timing.realtime_priority = Some(5);
        let before = Timing::of_this_thread();
        let sut = Watching::default();
        let Some(plugin) = fresh_plugin("6.0.17") else {
            return;
        };
        let outcome = plugin
            .loadgen_as_requested()
            .run(&sut, &Samples::new(100, 40), &request, &NoObserver)
            .unwrap();
        let noted = outcome.timing.unwrap();
        assert!(noted.refused[0].contains("there is no processor"), "{noted:?}");
        assert!(outcome.warnings.contains(&noted.refused[0]));
        for issuing in sut.0.into_inner().unwrap() {
            assert_eq!(issuing.realtime_priority, noted.realtime_priority);
        }
        assert_eq!(Timing::of_this_thread(), before);
    }
}

/// A SUT that answers at once, and records the scheduling of each issuing thread.
#[derive(Default)]
struct Watching(Mutex<Vec<Timing>>);

impl SystemUnderTest for Watching {
    fn name(&self) -> &str {
        "watching"
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        self.0.lock().unwrap().push(Timing::of_this_thread());
        query
            .iter()
            .for_each(|sample| completer.complete(&[QuerySampleResponse::new(sample.id, &[])]));
        Ok(())
    }
}

#[test]
fn a_search_that_would_never_end_is_refused() {
    let logs = tempfile::tempdir().unwrap();
    let mut request = request(Scenario::Server, Mode::FindPeakPerformance, logs.path());
    request.overrides.find_peak_decimals = Some(-1);
    let Some(plugin) = fresh_plugin("6.0.17") else {
        return;
    };
    let refused = plugin
        .loadgen_as_requested()
        .run(&Null::default(), &Samples::new(100, 40), &request, &NoObserver)
        .unwrap_err();
    assert!(refused.to_string().contains("never ends"), "{refused}");
}

/// The audit configurations of TEST01, TEST04 and TEST05.
const AUDITS: [&str; 3] = [
    "*.*.mode = 2\n*.*.accuracy_log_rng_seed = 720381539243781796\n*.*.accuracy_log_sampling_target = 16\n",
    "*.*.mode = 2\n*.*.performance_issue_same = 1\n*.*.performance_issue_same_index = 3\n",
    "*.*.mode = 2\n*.*.test05 = 1\n",
];

#[test]
fn an_audit_takes_effect_or_is_refused() {
    let seeds = "*.*.test05_qsl_rng_seed = 4\n*.*.test05_sample_index_rng_seed = 5\n*.*.test05_schedule_rng_seed = 6\n";
    for (version, refused) in [("6.0.17", [false; 3]), ("4.1.30", [true, false, true])] {
        for (audit, is_refused) in AUDITS.into_iter().zip(refused) {
            let Some(plugin) = fresh_plugin(version) else {
                return;
            };
            let logs = tempfile::tempdir().unwrap();
            let mut request = request(Scenario::SingleStream, Mode::PerformanceOnly, logs.path());
            request.mlperf_conf = Some(conf(&format!("{SEEDS}{seeds}")));
            request.audit_config = Some(conf(audit));
            let (sut, qsl) = (Null::default(), Samples::new(64, 64));
            let run = plugin
                .loadgen_as_requested()
                .run(&sut, &qsl, &request, &NoObserver);
            if is_refused {
                let error = run.unwrap_err().to_string();
                assert!(error.contains("LoadGen 4.1.30 ignores"), "{error}");
                continue;
            }
            let outcome = run.unwrap();
            let detail = detail_file(&logs.path().join("mlperf_log_detail.txt")).unwrap();
            let is_in_effect = match audit {
                of if of == AUDITS[0] => {
                    let seed = detail
                        .value("effective_accuracy_log_rng_seed")
                        .and_then(Value::as_u64);
                    seed == Some(720_381_539_243_781_796)
                }
                of if of == AUDITS[1] => {
                    detail
                        .value("effective_performance_issue_same")
                        .and_then(Value::as_bool)
                        == Some(true)
                }
                _ => {
                    let seed = detail.value("effective_qsl_rng_seed").and_then(Value::as_u64);
                    seed == Some(outcome.effective.qsl_rng_seed)
                }
            };
            assert!(is_in_effect, "{version}: {audit}");
        }
    }
}

#[test]
fn two_revisions_live_in_one_process() {
    let order = |version: &str| {
        let logs = tempfile::tempdir().unwrap();
        let sut = Null {
            remember: true,
            ..Null::default()
        };
        let request = request(Scenario::SingleStream, Mode::AccuracyOnly, logs.path());
        let outcome = run(version, &request, &sut, &Samples::new(50, 50))?;
        Some((
            outcome.identity.version,
            sut.queries.into_inner().unwrap().concat(),
        ))
    };
    let (Some(new), Some(old)) = (order("6.0.17"), order("4.1.30")) else {
        return;
    };
    assert_eq!((new.0.as_str(), old.0.as_str()), ("6.0.17", "4.1.30"));
    assert_eq!(new.1, old.1, "the same seeds give the same order in both");
}
