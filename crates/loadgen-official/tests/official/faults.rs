//! Tests of SUTs that fail, and of a full disk. The run is invalid with its reason, the logs are kept, and nothing hangs or
//! unwinds into C++.

use std::{
    fs,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use regatta_loadgen::{
    load_gen::{LoadGen, LoadgenError, NoObserver},
    outcome::Outcome,
    request::RunRequest,
    sut::{
        Completer, Query, QuerySampleIndex, QuerySampleLibrary, QuerySampleResponse, ResponseId, SutError,
        SystemUnderTest,
    },
};
use regatta_test_support::null_sut::{Samples, conf};
use regatta_types::{Mode, Scenario};

use crate::fresh_plugin;

type Issue = fn(&Faulty, Query<'_>, &Completer) -> Result<(), SutError>;

/// A SUT that answers at once, and has a fault from its tenth query on.
struct Faulty {
    fault: Issue,
    queries: Mutex<usize>,
    /// The completer and response that a SUT may keep beyond a run.
    kept: Mutex<Option<(Completer, ResponseId)>>,
}

fn answer(query: Query<'_>, completer: &Completer) {
    for position in 0..query.len() {
        completer.complete(&[response(query.sample(position).id)]);
    }
}

fn response(id: ResponseId) -> QuerySampleResponse<'static> {
    QuerySampleResponse {
        id,
        data: &[1],
        n_tokens: 0,
    }
}

impl SystemUnderTest for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }
    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        let number = {
            let mut queries = self.queries.lock().unwrap();
            *queries += 1;
            *queries
        };
        *self.kept.lock().unwrap() = Some((completer.clone(), query.sample(0).id));
        if number < 10 {
            answer(query, completer);
            return Ok(());
        }
        (self.fault)(self, query, completer)
    }
    fn flush_queries(&self) -> Result<(), SutError> {
        Ok(())
    }
}

fn run_on(
    scenario: Scenario,
    fault: Issue,
    qsl: &dyn QuerySampleLibrary,
) -> Option<(Result<Outcome, LoadgenError>, Faulty, tempfile::TempDir)> {
    let plugin = fresh_plugin("6.0.17")?;
    let logs = tempfile::tempdir().unwrap();
    let mut request = RunRequest::new("null", scenario, Mode::PerformanceOnly, logs.path());
    request.user_conf = Some(conf("*.Server.target_qps = 500\n"));
    request.overrides.min_duration = Some(Duration::from_millis(200));
    request.overrides.min_query_count = Some(100);
    request.issue.stall_timeout = Some(Duration::from_millis(300));
    let sut = Faulty {
        fault,
        queries: Mutex::new(0),
        kept: Mutex::new(None),
    };
    let began = Instant::now();
    let outcome = plugin
        .loadgen_as_requested()
        .run(&sut, qsl, &request, &NoObserver);
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "took {:?}",
        began.elapsed()
    );
    Some((outcome, sut, logs))
}

/// Runs, and expects an invalid outcome with this fault and a detail log with the queries so far.
fn assert_fault(scenario: Scenario, fault: Issue, words: &str) {
    let Some((outcome, _, logs)) = run_on(scenario, fault, &Samples::new(50, 50)) else {
        return;
    };
    let outcome = outcome.unwrap();
    assert_eq!(outcome.valid, Some(false), "{scenario}");
    assert!(
        outcome.faults.iter().any(|f| f.contains(words)),
        "{scenario}: {:?}",
        outcome.faults
    );
    let detail = fs::read_to_string(logs.path().join("mlperf_log_detail.txt")).unwrap();
    assert!(
        detail.contains("Starting performance mode") && detail.ends_with('\n'),
        "{scenario}: {detail}"
    );
}

const SERIES: [Scenario; 3] = [Scenario::SingleStream, Scenario::MultiStream, Scenario::Server];

#[test]
fn an_error_ends_the_run() {
    for scenario in SERIES {
        assert_fault(
            scenario,
            |_, _, _| Err("the engine is gone".into()),
            "the system under test failed: the engine is gone",
        );
    }
}

#[test]
fn a_panic_ends_the_run() {
    for scenario in SERIES {
        assert_fault(
            scenario,
            |_, _, _| panic!("index 7"),
            "the system under test panicked: index 7",
        );
    }
}

#[test]
fn giving_up_from_another_thread_ends_the_run() {
    for scenario in SERIES {
        let fault: Issue = |_, _, completer| {
            let completer = completer.clone();
            thread::spawn(move || completer.fail("out of memory".into()));
            Ok(())
        };
        assert_fault(scenario, fault, "the system under test failed: out of memory");
    }
}

#[test]
fn never_answering_is_a_stall() {
    for scenario in SERIES {
        assert_fault(scenario, |_, _, _| Ok(()), "no answer for 300ms");
    }
}

#[test]
fn responses_to_samples_that_are_not_outstanding_never_reach_loadgen() {
    let fault: Issue = |_, query, completer| {
        answer(query, completer);
        answer(query, completer);
        for id in [0, 1 << 40, u64::MAX] {
            completer.complete(&[response(ResponseId(id))]);
            completer.first_token(&[response(ResponseId(id))]);
        }
        Ok(())
    };
    let Some((outcome, sut, _logs)) = run_on(Scenario::SingleStream, fault, &Samples::new(50, 50)) else {
        return;
    };
    let outcome = outcome.unwrap();
    assert!(outcome.performance.is_some(), "LoadGen came to its results");
    assert_eq!(outcome.valid, Some(false));
    assert!(
        outcome.faults[0].contains("never issued") && outcome.faults[1].contains("answered before"),
        "{:?}",
        outcome.faults
    );
    // Long after the end, when LoadGen has freed everything.
    let (completer, id) = sut.kept.into_inner().unwrap().unwrap();
    completer.complete(&[response(id)]);
    completer.fail("too late".into());
}

#[test]
fn a_library_that_cannot_load_ends_the_run() {
    struct Broken;
    impl QuerySampleLibrary for Broken {
        fn name(&self) -> &str {
            "broken"
        }
        fn total_sample_count(&self) -> usize {
            10
        }
        fn performance_sample_count(&self) -> usize {
            10
        }
        fn load_samples_to_ram(&self, _: &[QuerySampleIndex]) -> Result<(), SutError> {
            Err("no such file: 7.npy".into())
        }
        fn unload_samples_from_ram(&self, _: &[QuerySampleIndex]) -> Result<(), SutError> {
            Ok(())
        }
    }
    let Some((outcome, ..)) = run_on(Scenario::Offline, |_, _, _| Ok(()), &Broken) else {
        return;
    };
    let outcome = outcome.unwrap();
    assert_eq!((outcome.valid, outcome.performance), (Some(false), None));
    assert_eq!(outcome.faults, ["loading samples failed: no such file: 7.npy"]);
}

#[test]
fn a_process_that_abandoned_a_run_starts_no_other() {
    let Some(plugin) = fresh_plugin("6.0.17") else {
        return;
    };
    let logs = tempfile::tempdir().unwrap();
    let mut request = RunRequest::new("null", Scenario::Offline, Mode::PerformanceOnly, logs.path());
    request.issue.stall_timeout = Some(Duration::from_millis(100));
    let sut = Faulty {
        fault: |_, _, _| Ok(()),
        queries: Mutex::new(100),
        kept: Mutex::new(None),
    };
    let loadgen = plugin.loadgen_as_requested();
    let first = loadgen
        .run(&sut, &Samples::new(5, 5), &request, &NoObserver)
        .unwrap();
    assert_eq!(first.valid, Some(false));
    let second = loadgen
        .run(&sut, &Samples::new(5, 5), &request, &NoObserver)
        .unwrap_err();
    assert!(second.to_string().contains("start a new process"), "{second}");
}

/// A library whose second count has more samples than a vector can hold.
struct Growing {
    samples: Samples,
    calls: AtomicU64,
}

impl QuerySampleLibrary for Growing {
    fn name(&self) -> &str {
        self.samples.name()
    }
    fn total_sample_count(&self) -> usize {
        self.performance_sample_count()
    }
    fn performance_sample_count(&self) -> usize {
        // Both counts are read before the run, and again when LoadGen is called.
        match self.calls.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => 5,
            _ => 1 << 61,
        }
    }
    fn load_samples_to_ram(&self, samples: &[QuerySampleIndex]) -> Result<(), SutError> {
        self.samples.load_samples_to_ram(samples)
    }
    fn unload_samples_from_ram(&self, samples: &[QuerySampleIndex]) -> Result<(), SutError> {
        self.samples.unload_samples_from_ram(samples)
    }
}

#[test]
fn an_exception_in_loadgen_is_reported_and_the_log_kept() {
    let Some(plugin) = fresh_plugin("6.0.17") else {
        return;
    };
    let logs = tempfile::tempdir().unwrap();
    let request = RunRequest::new("null", Scenario::Offline, Mode::PerformanceOnly, logs.path());
    let library = Growing {
        samples: Samples::new(5, 5),
        calls: AtomicU64::new(0),
    };
    let sut = Faulty {
        fault: |_, _, _| Ok(()),
        queries: Mutex::new(0),
        kept: Mutex::new(None),
    };
    let outcome = plugin
        .loadgen_as_requested()
        .run(&sut, &library, &request, &NoObserver)
        .unwrap();
    assert_eq!(outcome.valid, Some(false));
    assert!(
        outcome.faults[0].starts_with("LoadGen threw an exception: "),
        "{:?}",
        outcome.faults
    );
    let detail = fs::read_to_string(logs.path().join("mlperf_log_detail.txt")).unwrap();
    assert!(detail.contains("Starting performance mode"), "{detail}");
}

#[test]
fn a_missing_directory_and_a_full_disk_are_reported() {
    let Some(plugin) = fresh_plugin("6.0.17") else {
        return;
    };
    let loadgen = plugin.loadgen_as_requested();
    let sut = regatta_test_support::null_sut::Null::default();
    let mut request = RunRequest::new(
        "null",
        Scenario::SingleStream,
        Mode::PerformanceOnly,
        "/nowhere/logs",
    );
    request.overrides.min_duration = Some(Duration::from_millis(10));
    let absent = loadgen
        .run(&sut, &Samples::new(5, 5), &request, &NoObserver)
        .unwrap_err();
    assert!(
        absent
            .to_string()
            .contains("/nowhere/logs/mlperf_log_summary.txt"),
        "{absent}"
    );

    for kind in ["summary", "accuracy"] {
        let logs = tempfile::tempdir().unwrap();
        request.logs.dir = logs.path().to_owned();
        std::os::unix::fs::symlink("/dev/full", request.logs.path(kind)).unwrap();
        let full = loadgen.run(&sut, &Samples::new(5, 5), &request, &NoObserver);
        assert!(matches!(full, Err(LoadgenError::Log { .. })), "{kind}: {full:?}");
    }
}
