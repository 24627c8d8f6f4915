//! Tests of complete runs: the issued samples, their records in the logs, and the form of all logs.

use std::{collections::BTreeSet, fs, path::Path, thread};

use regatta_loadgen::{
    NativeLoadGen,
    load_gen::{LoadGen, LoadgenError, NoObserver},
    sut::ResidentLibrary,
};
use regatta_types::{Mode, Scenario};

use crate::{
    builds::Build,
    cases::{Case, Draw},
    draws,
    echo::EchoSut,
    logs::{detail_lines, summary_labels, without_log_facts},
    oracle::{Oracle, words},
    tally::Tally,
};

/// The result of a run: issued samples and logs.
struct Left {
    issued: Vec<u64>,
    detail: Vec<(String, String)>,
    summary: String,
    accuracy: String,
}

impl Left {
    fn read(dir: &Path, issued: Vec<u64>) -> Self {
        let read = |name: &str| fs::read_to_string(dir.join(format!("mlperf_log_{name}"))).unwrap();
        Self {
            issued,
            detail: without_log_facts(detail_lines(&read("detail.txt"))),
            summary: read("summary.txt"),
            accuracy: read("accuracy.json"),
        }
    }
}

fn ours(case: &Case, build: Build) -> Result<Left, LoadgenError> {
    let dir = tempfile::tempdir().unwrap();
    let mut request = case.request(dir.path());
    request.rng_abi = build.abi;
    let settings = request.resolve().map_err(LoadgenError::Conf)?.settings;
    let first_tokens = settings.use_token_latencies && settings.scenario != Scenario::Offline;
    let sut = EchoSut::new(first_tokens, case);
    let count = |samples: u64| usize::try_from(samples).unwrap();
    let qsl = ResidentLibrary::new("CountingQSL", count(case.total))
        .with_performance_samples(count(case.performance));
    let outcome = NativeLoadGen.run(&sut, &qsl, &request, &NoObserver)?;
    assert_eq!(outcome.faults, Vec::<String>::new(), "{case:#?}");
    Ok(Left::read(dir.path(), sut.issued()))
}

fn theirs(oracle: &Oracle, case: &Case) -> Left {
    let dir = tempfile::tempdir().unwrap();
    oracle.run("run", case, dir.path(), &[]);
    Left::read(dir.path(), words(&dir.path().join("issue.bin")))
}

/// Compares runs completely where nothing depends on the clock (`exact`), otherwise all that does not.
pub(crate) fn compare(case: &Case, exact: bool, oracle: &Oracle, build: Build) -> Result<(), LoadgenError> {
    let (ours, theirs) = if case.late_ms == 0 {
        (ours(case, build)?, theirs(oracle, case))
    } else {
        // Such runs sleep most of the time.
        thread::scope(|scope| {
            let theirs = scope.spawn(|| theirs(oracle, case));
            ours(case, build).map(|ours| (ours, theirs.join().unwrap()))
        })?
    };
    // The clock decides which Server queries are coalesced, not which samples they have.
    let coalesces = case.user_conf.contains("coalesce_queries = 1");
    let issued = |left: &Left| -> Vec<u64> {
        let kept = |word: &&u64| !(coalesces && **word == u64::MAX);
        left.issued.iter().filter(kept).copied().collect()
    };
    assert_same(&issued(&ours), &issued(&theirs), exact, case, "other queries");
    if case.issue_threads > 1 {
        // The clock decides which thread's answers are logged first.
        let entries = |left: &Left| -> BTreeSet<String> {
            let lines = left.accuracy.lines();
            lines.map(|line| line.trim_end_matches(',').to_owned()).collect()
        };
        assert_eq!(entries(&ours), entries(&theirs), "other accuracy log: {case:#?}");
    } else {
        let entries = |left: &Left| -> Vec<String> {
            let text = left.accuracy.trim_end().trim_end_matches(']').trim_end();
            text.lines()
                .map(|line| line.trim_end_matches(',').to_owned())
                .collect()
        };
        assert_same(
            &entries(&ours),
            &entries(&theirs),
            exact,
            case,
            "other accuracy log",
        );
    }
    if exact {
        assert_eq!(ours.accuracy.len(), theirs.accuracy.len(), "{case:#?}");
    }
    assert_eq!(
        settled(&ours.detail, exact, build),
        settled(&theirs.detail, exact, build),
        "other detail log: {case:#?}"
    );
    assert_eq!(
        summary_labels(&build.as_its_summary(&ours.summary)),
        summary_labels(&theirs.summary),
        "other summary: {case:#?}"
    );
    Ok(())
}

/// Checks that both are equal, or, where the clock decides the length, that the longer begins with the shorter.
fn assert_same<T: PartialEq>(ours: &[T], theirs: &[T], exact: bool, case: &Case, subject: &str) {
    if exact {
        assert_eq!(ours.len(), theirs.len(), "{subject}, fewer or more: {case:#?}");
    }
    let common = ours.len().min(theirs.len());
    assert!(ours[..common] == theirs[..common], "{subject}: {case:#?}");
}

/// Returns the keys in order, with values where settings and seeds decide them.
fn settled(lines: &[(String, String)], exact: bool, build: Build) -> Vec<(&str, &str)> {
    const TIMED: [&str; 10] = [
        "loadgen_",
        "test_datetime",
        "get_sut_name",
        "power_",
        "result_",
        "early_stopping_",
        "logger_",
        "num_errors",
        "error_runtime",
        "generic_message",
    ];
    lines
        .iter()
        // The clock decides whether a run is valid, and how it ends.
        .filter(|(key, value)| {
            let ending = key == "error_runtime" || (key == "generic_message" && value.contains("Ending"));
            // The official LoadGen gets a number of threads, Regatta's makes its own.
            let of_threads = value.contains("Registered IssueQueryThread");
            key != "result_invalid_reason" && (exact || !ending) && !of_threads && !build.lacks_key(key)
        })
        .map(|(key, value)| {
            let says = exact
                && matches!(
                    key.as_str(),
                    "error_runtime" | "generic_message" | "result_query_count"
                );
            let timed =
                TIMED.iter().any(|prefix| key.starts_with(prefix)) && !says || build.tells_otherwise(key);
            (key.as_str(), if timed { "" } else { value })
        })
        .collect()
}

/// Returns whether nothing in an undelayed case depends on the clock.
fn is_exact(case: &Case) -> bool {
    let says = |what: &str| case.user_conf.contains(what);
    if case.mode == Mode::AccuracyOnly && case.audit_config.is_none() {
        // No limit ends an accuracy run.
        return true;
    }
    if says("max_duration") && !says("max_duration = 0\n") {
        return false;
    }
    if case.scenario == Scenario::Server {
        // The coalesced queries decide which one exceeds the limit.
        return !(says("coalesce_queries = 1") && says("max_query_count"));
    }
    says("min_duration = 0\n")
}

/// Compares the requested number of runs.
fn compare_draws(oracle: &Oracle, build: Build, count: u64, mut next: impl FnMut() -> Case) {
    let (mut tally, mut exactly) = (Tally::default(), 0);
    while tally.compared() < count {
        let Some(case) = build.as_run(next()) else {
            continue;
        };
        let exact = is_exact(&case);
        match compare(&case, exact, oracle, build) {
            Ok(()) => {
                tally.equal(&case);
                exactly += u64::from(exact);
            }
            Err(LoadgenError::Settings { .. }) => tally.refused(),
            Err(error) => panic!("{error}: {case:#?}"),
        }
    }
    println!(
        "Whole runs, {}:\n{tally}; {exactly} compared to the last sample, the rest as far as both ran",
        build.name
    );
}

fn compare_build(build: Build) {
    let Some(oracle) = build.find() else { return };
    let (count, seed) = draws();
    let mut draw = Draw::new(seed ^ 0x0F_F1C1A1);
    compare_draws(&oracle, build, count, || {
        let longest_ms = if draw.below(2) == 0 { 0 } else { 30 };
        let mut case = draw.case(longest_ms);
        if draw.below(8) == 0 {
            case.mode = Mode::SubmissionRun;
        }
        case
    });
}

#[test]
fn every_run_equals_the_official_one() {
    compare_build(Build::NEWEST);
}

#[test]
fn every_run_equals_that_of_an_older_compiler() {
    compare_build(Build::BY_GCC_10);
}

#[test]
fn every_run_equals_those_of_older_versions_but_for_what_is_documented() {
    Build::OLDER.into_iter().for_each(compare_build);
}

/// Each thread has its share of the queries, whichever thread it is.
#[test]
fn every_run_with_issuing_threads_equals_the_official_one() {
    let build = Build::NEWEST;
    let Some(oracle) = build.find() else { return };
    let (count, seed) = draws();
    let mut draw = Draw::new(seed ^ 0x7_4EAD5);
    compare_draws(&oracle, build, count.div_ceil(10), || draw.threaded_case());
}

/// With a SUT that delays its answers, the limit on outstanding queries ends a run at a certain query.
#[test]
fn runs_with_too_many_outstanding_queries_end_at_the_same_one() {
    let build = Build::NEWEST;
    let Some(oracle) = build.find() else { return };
    for (capacity, limit) in [(1, 1), (30, 7), (100, 1000)] {
        let mut case = Case::plain(Scenario::Server, Mode::PerformanceOnly, 50);
        case.capacity = capacity;
        case.user_conf = format!(
            "*.Server.target_qps = 5000\n*.Server.min_duration = 30\n*.Server.min_query_count = 90\n\
             *.Server.max_async_queries = {limit}\n"
        );
        compare(&case, true, &oracle, build).unwrap();
    }
}

/// The bundled benchmark's own settings, as the quickstart runs it.
#[test]
fn the_runs_of_the_quickstart_equal_the_official_ones() {
    let build = Build::NEWEST;
    let Some(oracle) = build.find() else { return };
    for scenario in Scenario::ALL {
        for mode in [Mode::AccuracyOnly, Mode::PerformanceOnly] {
            let mut case = Case::digits(scenario, mode);
            compare(&case, is_exact(&case), &oracle, build).unwrap();
            case.user_conf = case.user_conf.replace("min_duration = 300", "min_duration = 0");
            compare(&case, true, &oracle, build).unwrap();
        }
    }
}
