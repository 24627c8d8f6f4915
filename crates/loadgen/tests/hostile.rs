//! Systems under test that misbehave: the run ends, is invalid with a reason, and its logs are kept. Never a hang,
//! never a panic.
#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use regatta_loadgen::{
    NativeLoadGen,
    load_gen::{LoadGen, LoadgenError, NoObserver, Phase, RunObserver},
    outcome::Outcome,
    request::{ConfText, RunRequest, Wait},
    sut::{
        Completer, Query, QuerySample, QuerySampleLibrary, QuerySampleResponse, ResponseId, SutError,
        SystemUnderTest,
    },
};
use regatta_rules::{Mode, Scenario};

/// A SUT made of a closure.
struct Sut<F>(F);

impl<F> SystemUnderTest for Sut<F>
where
    F: Fn(&[QuerySample], &Completer) -> Result<(), SutError> + Sync,
{
    fn name(&self) -> &str {
        "hostile"
    }

    fn issue_query(&self, query: Query<'_>, completer: &Completer) -> Result<(), SutError> {
        let samples: Vec<_> = (0..query.len()).map(|position| query.sample(position)).collect();
        (self.0)(&samples, completer)
    }

    fn flush_queries(&self) -> Result<(), SutError> {
        Ok(())
    }
}

/// A library of 64 samples that fails to load when told to.
struct Qsl {
    loads: Result<(), &'static str>,
}

const QSL: Qsl = Qsl { loads: Ok(()) };

impl QuerySampleLibrary for Qsl {
    fn name(&self) -> &str {
        "library"
    }

    fn total_sample_count(&self) -> usize {
        64
    }

    fn performance_sample_count(&self) -> usize {
        64
    }

    fn load_samples_to_ram(&self, _: &[usize]) -> Result<(), SutError> {
        self.loads.map_err(Into::into)
    }

    fn unload_samples_from_ram(&self, _: &[usize]) -> Result<(), SutError> {
        Ok(())
    }
}

fn answer(id: ResponseId, completer: &Completer) {
    completer.complete(&[QuerySampleResponse {
        id,
        data: &[1, 2],
        n_tokens: 0,
    }]);
}

fn answer_all(samples: &[QuerySample], completer: &Completer) -> Result<(), SutError> {
    samples.iter().for_each(|sample| answer(sample.id, completer));
    Ok(())
}

fn request(scenario: Scenario, mode: Mode, dir: &Path) -> RunRequest {
    let mut request = RunRequest::new("m", scenario, mode, dir);
    let conf = "*.*.min_duration = 10\n*.*.min_query_count = 70\n*.Server.target_qps = 7000\n\
                *.Offline.target_qps = 9000\n*.SingleStream.target_latency = 0.01\n*.MultiStream.target_latency = 0.01";
    request.user_conf = Some(ConfText::new("user.conf", conf));
    request.issue.stall_timeout = Some(Duration::from_millis(80));
    request
}

/// Runs a hostile SUT in every scenario; each outcome must be invalid, name the fault, and have left readable logs.
fn expect_fault<F>(told: &str, hostile: F)
where
    F: Fn(&[QuerySample], &Completer) -> Result<(), SutError> + Sync,
{
    for scenario in Scenario::ALL {
        for mode in [Mode::AccuracyOnly, Mode::PerformanceOnly] {
            let dir = tempfile::tempdir().unwrap();
            let outcome = NativeLoadGen
                .run(
                    &Sut(&hostile),
                    &QSL,
                    &request(scenario, mode, dir.path()),
                    &NoObserver,
                )
                .unwrap();
            assert_eq!(outcome.valid, Some(false), "{scenario} {mode}");
            assert!(
                outcome.reasons.iter().any(|reason| reason.contains(told)),
                "{scenario} {mode}: {outcome:#?}"
            );
            let detail = fs::read_to_string(dir.path().join("mlperf_log_detail.txt")).unwrap();
            assert!(detail.contains("\"is_error\": true"), "{scenario} {mode}");
            let accuracy = fs::read_to_string(dir.path().join("mlperf_log_accuracy.json")).unwrap();
            assert!(accuracy.ends_with("\n]\n"), "{scenario} {mode}");
            let summary = fs::read_to_string(dir.path().join("mlperf_log_summary.txt")).unwrap();
            assert!(
                !summary.contains("Result is : VALID"),
                "{scenario} {mode}: {summary}"
            );
        }
    }
}

#[test]
fn one_that_never_answers_is_given_up() {
    expect_fault("stalled", |_, _| Ok(()));
}

#[test]
fn one_that_leaves_samples_out_is_given_up() {
    expect_fault("stalled", |samples, completer| {
        let answered: Vec<_> = samples
            .iter()
            .copied()
            .filter(|sample| sample.index >= 20)
            .collect();
        answer_all(&answered, completer)
    });
}

#[test]
fn one_that_answers_twice_is_found_out() {
    expect_fault("twice", |samples, completer| {
        answer_all(samples, completer)?;
        answer_all(samples, completer)
    });
}

#[test]
fn answers_to_nothing_are_found_out() {
    for unknown in [0, 1 << 40, u64::MAX, u64::MAX >> 1, 1 << 63 | 1] {
        expect_fault("never issued", |samples, completer| {
            answer(ResponseId(unknown), completer);
            answer_all(samples, completer)
        });
    }
}

#[test]
fn one_that_fails_is_told_with_its_cause() {
    expect_fault("issue_query failed: the device is gone", |_, _| {
        Err("the device is gone".into())
    });
}

#[test]
fn one_that_panics_is_told_with_its_words() {
    expect_fault("issue_query panicked: out of cheese", |_, _| {
        panic!("out of cheese")
    });
}

#[test]
fn one_that_gives_up_later_is_told() {
    expect_fault("the SUT gave up: engine lost", |_, completer| {
        completer.fail("engine lost".into());
        Ok(())
    });
}

#[test]
fn a_library_that_does_not_load_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let request = request(Scenario::Offline, Mode::PerformanceOnly, dir.path());
    let qsl = Qsl {
        loads: Err("7.npy is missing"),
    };
    let outcome = NativeLoadGen
        .run(&Sut(answer_all), &qsl, &request, &NoObserver)
        .unwrap();
    assert_eq!(outcome.valid, Some(false));
    assert_eq!(
        outcome.faults,
        ["the library's load_samples_to_ram failed: 7.npy is missing"]
    );
    let summary = fs::read_to_string(dir.path().join("mlperf_log_summary.txt")).unwrap();
    assert!(summary.contains("Result is : INVALID"), "{summary}");
}

#[test]
fn a_full_disk_is_told_for_every_log() {
    for log in ["summary.txt", "detail.txt", "accuracy.json"] {
        let dir = tempfile::tempdir().unwrap();
        symlink("/dev/full", dir.path().join(format!("mlperf_log_{log}"))).unwrap();
        let request = request(Scenario::SingleStream, Mode::SubmissionRun, dir.path());
        let error = NativeLoadGen
            .run(&Sut(answer_all), &QSL, &request, &NoObserver)
            .unwrap_err();
        let LoadgenError::Log { path, source } = &error else {
            panic!("{error}")
        };
        assert!(path.ends_with(format!("mlperf_log_{log}")), "{error}");
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    }
}

#[test]
fn a_log_directory_that_is_not_there_is_told() {
    let request = request(
        Scenario::Offline,
        Mode::PerformanceOnly,
        Path::new("no/such/directory"),
    );
    let error = NativeLoadGen
        .run(&Sut(answer_all), &QSL, &request, &NoObserver)
        .unwrap_err();
    assert!(
        error.to_string().contains("no/such/directory/mlperf_log_"),
        "{error}"
    );
}

/// Answers from threads, in any order, while the issuing thread blocks or spins.
#[test]
fn answers_from_many_threads_are_taken() {
    for (scenario, wait) in Scenario::ALL
        .into_iter()
        .flat_map(|s| [(s, Wait::Block), (s, Wait::Spin)])
    {
        let (sender, receiver) = mpsc::channel::<(ResponseId, Completer)>();
        let (sender, receiver) = (Mutex::new(sender), Mutex::new(receiver));
        let outcome = thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let Ok((id, completer)) = receiver.lock().unwrap().recv() else {
                            return;
                        };
                        answer(id, &completer);
                    }
                });
            }
            let dir = tempfile::tempdir().unwrap();
            let mut request = request(scenario, Mode::SubmissionRun, dir.path());
            request.issue.wait = wait;
            let sut = Sut(|samples: &[QuerySample], completer: &Completer| {
                for sample in samples.iter().rev() {
                    sender.lock().unwrap().send((sample.id, completer.clone()))?;
                }
                Ok(())
            });
            let outcome = NativeLoadGen.run(&sut, &QSL, &request, &NoObserver);
            // The threads end when there is no sender any more.
            *sender.lock().unwrap() = mpsc::channel().0;
            outcome.unwrap()
        });
        assert_eq!(outcome.faults, Vec::<String>::new(), "{scenario} {wait:?}");
        assert_eq!(outcome.accuracy.unwrap().samples, 64);
        assert!(
            outcome.performance.unwrap().issued.samples >= 70,
            "{scenario} {wait:?}"
        );
    }
}

/// Several issuing threads share the schedule: each query goes out once, with its own sample.
#[test]
fn issuing_threads_share_the_schedule() {
    let issued_by = |threads| {
        let issued: Mutex<Vec<(ResponseId, usize)>> = Mutex::default();
        let sut = Sut(|samples: &[QuerySample], completer: &Completer| {
            issued
                .lock()
                .unwrap()
                .extend(samples.iter().map(|sample| (sample.id, sample.index)));
            answer_all(samples, completer)
        });
        let dir = tempfile::tempdir().unwrap();
        let mut request = request(Scenario::Server, Mode::PerformanceOnly, dir.path());
        request.overrides.server_issue_threads = threads;
        let outcome = NativeLoadGen.run(&sut, &QSL, &request, &NoObserver).unwrap();
        assert_eq!(outcome.faults, Vec::<String>::new());
        let mut issued = issued.into_inner().unwrap();
        issued.sort_unstable();
        issued
    };
    let alone = issued_by(None);
    assert_eq!(issued_by(Some(3)), alone);
    assert_eq!(issued_by(Some(1)), alone);
    assert!(alone.len() >= 70);
}

/// The search ends at a rate that a SUT with one worker of known speed can keep.
#[test]
fn the_peak_of_a_slow_sut_is_found() {
    let (sender, receiver) = mpsc::channel::<(ResponseId, Completer)>();
    let outcome = thread::scope(|scope| {
        scope.spawn(move || {
            while let Ok((id, completer)) = receiver.recv() {
                thread::sleep(Duration::from_millis(2));
                answer(id, &completer);
            }
        });
        let sender = Mutex::new(Some(sender));
        let dir = tempfile::tempdir().unwrap();
        let mut request = request(Scenario::Server, Mode::FindPeakPerformance, dir.path());
        let conf = "*.Server.target_qps = 100\n*.Server.target_latency = 400\n*.*.min_duration = 300\n\
                    *.*.min_query_count = 30";
        request.user_conf = Some(ConfText::new("user.conf", conf));
        request.overrides.find_peak_decimals = Some(-2);
        request.issue.stall_timeout = Some(Duration::from_secs(5));
        let sut = Sut(|samples: &[QuerySample], completer: &Completer| {
            for sample in samples {
                let sender = sender.lock().unwrap();
                sender.as_ref().unwrap().send((sample.id, completer.clone()))?;
            }
            Ok(())
        });
        let outcome = NativeLoadGen.run(&sut, &QSL, &request, &NoObserver);
        sender.lock().unwrap().take();
        let detail = fs::read_to_string(dir.path().join("mlperf_log_detail.txt")).unwrap();
        assert!(
            detail.contains("FindPeakPerformance: Found peak performance field: "),
            "{detail}"
        );
        outcome.unwrap()
    });
    let performance = outcome.performance.unwrap();
    assert_eq!(
        performance.performance_constraints_met,
        Some(true),
        "{performance:#?}"
    );
    assert!(performance.metric.value < 5000.0, "{performance:#?}");
}

/// A completer that is kept beyond the run does no harm, neither to that run's logs nor to the next run.
#[test]
fn answers_after_the_end_are_dropped() {
    let kept: Mutex<Vec<(ResponseId, Completer)>> = Mutex::default();
    let run = |dir: &Path, scenario| -> Outcome {
        let sut = Sut(|samples: &[QuerySample], completer: &Completer| {
            kept.lock().unwrap().push((samples[0].id, completer.clone()));
            answer_all(samples, completer)
        });
        NativeLoadGen
            .run(
                &sut,
                &QSL,
                &request(scenario, Mode::AccuracyOnly, dir),
                &NoObserver,
            )
            .unwrap()
    };
    for scenario in Scenario::ALL {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), scenario);
        let before = fs::read(dir.path().join("mlperf_log_accuracy.json")).unwrap();
        for (id, completer) in kept.lock().unwrap().drain(..) {
            answer(id, &completer);
            completer.fail("too late".into());
        }
        assert_eq!(run(dir.path(), scenario).faults, Vec::<String>::new());
        assert_eq!(
            fs::read(dir.path().join("mlperf_log_accuracy.json")).unwrap(),
            before
        );
    }
}

/// What a SUT may do with a sample.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Answer,
    AnswerTwice,
    AnswerStranger,
    Keep,
    AnswerKept,
    Fail,
    Panic,
}

/// Watches that every window that is opened is closed.
#[derive(Default)]
struct Windows(AtomicU64, AtomicU64);

impl RunObserver for Windows {
    fn window_begins(&self, _: Phase) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn window_ends(&self, _: Phase) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever a SUT does, the run ends soon, and it is faultless exactly if the SUT was.
    #[test]
    fn whatever_a_sut_does_the_run_ends(
        deeds in proptest::collection::vec(
            prop_oneof![
                40 => Just(Deed::Answer), 1 => Just(Deed::AnswerTwice), 1 => Just(Deed::AnswerStranger),
                1 => Just(Deed::Keep), 2 => Just(Deed::AnswerKept), 1 => Just(Deed::Fail), 1 => Just(Deed::Panic),
            ],
            1..60,
        ),
        scenario in 0..4_usize,
        mode in 0..3_usize,
    ) {
        let next = AtomicU64::new(0);
        let kept: Mutex<Vec<ResponseId>> = Mutex::default();
        let misdeeds = AtomicU64::new(0);
        let sut = Sut(|samples: &[QuerySample], completer: &Completer| -> Result<(), SutError> {
            for sample in samples {
                let turn = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
                let deed = deeds[turn % deeds.len()];
                if !matches!(deed, Deed::Answer | Deed::Keep | Deed::AnswerKept) {
                    misdeeds.fetch_add(1, Ordering::Relaxed);
                }
                match deed {
                    Deed::Answer => answer(sample.id, completer),
                    Deed::AnswerTwice => {
                        answer(sample.id, completer);
                        answer(sample.id, completer);
                    }
                    Deed::AnswerStranger => answer(ResponseId(u64::MAX - 3), completer),
                    Deed::Keep => kept.lock().unwrap().push(sample.id),
                    Deed::AnswerKept => {
                        answer(sample.id, completer);
                        let kept: Vec<_> = kept.lock().unwrap().drain(..).collect();
                        kept.into_iter().for_each(|id| answer(id, completer));
                    }
                    Deed::Fail => return Err("failed".into()),
                    Deed::Panic => panic!("panicked"),
                }
            }
            Ok(())
        });
        let dir = tempfile::tempdir().unwrap();
        let mode = [Mode::AccuracyOnly, Mode::PerformanceOnly, Mode::SubmissionRun][mode];
        let request = request(Scenario::ALL[scenario], mode, dir.path());
        let (windows, begun) = (Windows::default(), Instant::now());
        let outcome = NativeLoadGen.run(&sut, &QSL, &request, &windows).unwrap();
        prop_assert!(begun.elapsed() < Duration::from_secs(5));
        prop_assert_eq!(windows.0.into_inner(), windows.1.into_inner());
        let stalled = outcome.faults.iter().any(|fault| fault.contains("stalled"));
        prop_assert_eq!(outcome.faults.is_empty(), misdeeds.into_inner() == 0 && !stalled, "{:?}", outcome.faults);
        prop_assert!(outcome.faults.is_empty() || outcome.valid == Some(false));
    }
}
