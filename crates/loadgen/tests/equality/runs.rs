//! Whole runs: what the SUT is asked, what is logged of it, and the form of all logs.

use std::{fs, path::Path};

use regatta_loadgen::{
    NativeLoadGen,
    load_gen::{LoadGen, LoadgenError, NoObserver},
};
use regatta_rules::{Mode, Scenario};

use crate::{
    cases::{Case, Draw},
    draws,
    echo::{CountingQsl, EchoSut},
    logs::{detail_lines, summary_labels, without_log_facts},
    official,
    oracle::{Oracle, words},
    tally::Tally,
};

/// What a run leaves behind.
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

fn ours(case: &Case) -> Result<Left, LoadgenError> {
    let dir = tempfile::tempdir().unwrap();
    let request = case.request(dir.path());
    let settings = request.resolve().map_err(LoadgenError::Conf)?.settings;
    let sut = EchoSut::new(settings.use_token_latencies && settings.scenario != Scenario::Offline);
    let qsl = CountingQsl {
        total: case.total,
        performance: case.performance,
    };
    let outcome = NativeLoadGen.run(&sut, &qsl, &request, &NoObserver)?;
    assert_eq!(outcome.faults, Vec::<String>::new(), "{case:#?}");
    Ok(Left::read(dir.path(), sut.issued()))
}

fn theirs(oracle: &Oracle, case: &Case) -> Left {
    let dir = tempfile::tempdir().unwrap();
    oracle.run("run", case, dir.path(), &[]);
    Left::read(dir.path(), words(&dir.path().join("issue.bin")))
}

/// Compares runs of which the clock decides nothing (`exact`), or all but what it decides.
fn compare(case: &Case, exact: bool) -> Result<(), LoadgenError> {
    let ours = ours(case)?;
    let theirs = theirs(&official().unwrap(), case);
    // The clock decides which Server queries are coalesced, not which samples they hold.
    let coalesces = case.user_conf.contains("coalesce_queries = 1");
    let issued = |left: &Left| -> Vec<u64> {
        left.issued
            .iter()
            .copied()
            .filter(|&word| !(coalesces && word == u64::MAX))
            .collect()
    };
    let (our_issued, their_issued) = (issued(&ours), issued(&theirs));
    let (queries, entries) = if exact {
        assert_eq!(
            ours.accuracy.len(),
            theirs.accuracy.len(),
            "other accuracy log: {case:#?}"
        );
        assert_eq!(
            our_issued.len(),
            their_issued.len(),
            "more or fewer queries: {case:#?}"
        );
        (our_issued.len(), ours.accuracy.len())
    } else {
        let end_of_log = ",\n]\n".len();
        (
            our_issued.len().min(their_issued.len()),
            ours.accuracy.len().min(theirs.accuracy.len()) - end_of_log,
        )
    };
    assert!(
        our_issued[..queries] == their_issued[..queries],
        "other queries: {case:#?}"
    );
    assert!(
        ours.accuracy[..entries] == theirs.accuracy[..entries],
        "other accuracy log: {case:#?}"
    );
    assert_eq!(
        settled(&ours.detail, exact),
        settled(&theirs.detail, exact),
        "other detail log: {case:#?}"
    );
    assert_eq!(
        summary_labels(&ours.summary),
        summary_labels(&theirs.summary),
        "other summary: {case:#?}"
    );
    Ok(())
}

/// Keys in order, with values where settings and seeds decide them.
fn settled(lines: &[(String, String)], exact: bool) -> Vec<(&str, &str)> {
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
        // Whether a run is valid, and how it ends, is the clock's to decide.
        .filter(|(key, value)| {
            let ending = key == "error_runtime" || (key == "generic_message" && value.contains("Ending"));
            key != "result_invalid_reason" && (exact || !ending)
        })
        .map(|(key, value)| {
            let says = exact
                && matches!(
                    key.as_str(),
                    "error_runtime" | "generic_message" | "result_query_count"
                );
            let timed = TIMED.iter().any(|prefix| key.starts_with(prefix)) && !says;
            (key.as_str(), if timed { "" } else { value })
        })
        .collect()
}

fn is_exact(case: &Case) -> bool {
    let says = |what: &str| case.user_conf.contains(what);
    if case.scenario == Scenario::Server {
        return !(says("coalesce_queries = 1") && says("max_query_count"));
    }
    case.mode == Mode::AccuracyOnly && case.audit_config.is_none() || says("min_duration = 0\n")
}

#[test]
fn every_run_equals_the_official_one() {
    if official().is_none() {
        return;
    }
    let (count, seed) = draws();
    let mut draw = Draw::new(seed ^ 0x0F_F1C1A1);
    let (mut tally, mut exactly) = (Tally::default(), 0);
    while tally.compared() < count {
        let longest_ms = if draw.below(2) == 0 { 0 } else { 30 };
        let mut case = draw.case(longest_ms);
        if draw.below(8) == 0 {
            case.mode = Mode::SubmissionRun;
        }
        match compare(&case, is_exact(&case)) {
            Ok(()) => {
                tally.equal(&case);
                exactly += u64::from(is_exact(&case));
            }
            Err(LoadgenError::Settings { .. }) => tally.refused(),
            Err(error) => panic!("{error}: {case:#?}"),
        }
    }
    println!("Whole runs:\n{tally}; {exactly} compared to the last sample, the rest as far as both ran");
}

/// The bundled benchmark's own settings, as the quickstart runs it.
#[test]
fn the_runs_of_the_quickstart_equal_the_official_ones() {
    if official().is_none() {
        return;
    }
    for scenario in Scenario::ALL {
        for mode in [Mode::AccuracyOnly, Mode::PerformanceOnly] {
            let mut case = Case::digits(scenario, mode);
            compare(&case, is_exact(&case)).unwrap();
            case.user_conf = case.user_conf.replace("min_duration = 300", "min_duration = 0");
            compare(&case, true).unwrap();
        }
    }
}
