//! Logs that are not what an audit needs, and runs that are not what they claim.

use std::{error::Error, path::Path};

use regatta_submission::audit::{AuditError, Audited, Dtype, Report, Request, Test, verify};

use crate::{
    logs::{Run, put_accuracy, round, text},
    tree::{files, put},
};

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let bench = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let run = Run::new("Offline", "100");
        run.put(&bench.at("results/performance/run_1"));
        run.put(&bench.at("audit"));
        let entries: Vec<_> = (0..10).map(|index| (index, vec![index as u8, 0, 0, 0])).collect();
        put_accuracy(&bench.at("results/accuracy/mlperf_log_accuracy.json"), &entries);
        put_accuracy(&bench.at("audit/mlperf_log_accuracy.json"), &entries[3..7]);
        bench
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join(path)
    }

    fn verify(&self, test: Test, name: &str) -> Result<Report, AuditError> {
        verify(&Request {
            test,
            audited: &Audited::in_results(&self.at("results")),
            compliance: &self.at("audit"),
            output: &self.at("out"),
            dtype: Dtype::Int32,
            round: &round(name),
        })
    }
}

/// The error and its causes, without the directory that changes.
fn told(error: &AuditError, below: &Path) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text.replace(below.to_str().unwrap(), "DIR")
}

#[test]
fn every_fault_names_its_file_and_place() {
    let faults: [(&str, &str, &[u8]); 9] = [
        (
            "cut by truncation",
            "results/accuracy/mlperf_log_accuracy.json",
            b"[\n{ \"seq_id\" : 0, \"qsl_idx\" : 0, \"data\" : \"00\n\n...\n\n00\" }\n]\n",
        ),
        (
            "killed",
            "audit/mlperf_log_accuracy.json",
            b"[\n{ \"seq_id\" : 0, \"qsl_idx\" : 0, \"data\" : \"00",
        ),
        ("empty", "audit/mlperf_log_accuracy.json", b""),
        (
            "no hexadecimal",
            "audit/mlperf_log_accuracy.json",
            b"[\n{ \"seq_id\" : 0, \"qsl_idx\" : 0, \"data\" : \"0x\" }\n]\n",
        ),
        (
            "ragged",
            "audit/mlperf_log_accuracy.json",
            b"[\n{ \"seq_id\" : 0, \"qsl_idx\" : 5, \"data\" : \"000000\" }\n]\n",
        ),
        ("garbage", "audit/mlperf_log_detail.txt", b":::MLLOG {\"key\": 1"),
        ("no scenario", "audit/mlperf_log_detail.txt", b"nothing\n"),
        (
            "no score",
            "results/performance/run_1/mlperf_log_summary.txt",
            b"Scenario : Offline\nSamples per second: many\n",
        ),
        (
            "no text",
            "results/performance/run_1/mlperf_log_summary.txt",
            b"Scenario : Off\xff\n",
        ),
    ];
    let mut all = String::new();
    for (what, path, content) in faults {
        let bench = Bench::new();
        put(&bench.at(path), content);
        let (test, round) = if path.ends_with("summary.txt") {
            (Test::Test04, "v5.0")
        } else {
            (Test::Test01, "v5.1")
        };
        let error = bench.verify(test, round).unwrap_err();
        all.push_str(&format!("{what}: {}\n", told(&error, bench.dir.path())));
        assert!(!bench.at("out").exists(), "{what}: nothing is written");
    }
    for missing in [
        "results/performance/run_1/mlperf_log_detail.txt",
        "audit/mlperf_log_accuracy.json",
    ] {
        let bench = Bench::new();
        std::fs::remove_file(bench.at(missing)).unwrap();
        let error = bench.verify(Test::Test01, "v5.1").unwrap_err();
        all.push_str(&format!("missing: {}\n", told(&error, bench.dir.path())));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_log_is_not_compared_with_itself() {
    let bench = Bench::new();
    std::fs::remove_file(bench.at("audit/mlperf_log_accuracy.json")).unwrap();
    std::os::unix::fs::symlink(
        bench.at("results/accuracy/mlperf_log_accuracy.json"),
        bench.at("audit/mlperf_log_accuracy.json"),
    )
    .unwrap();
    assert!(matches!(
        bench.verify(Test::Test01, "v5.1"),
        Err(AuditError::SameFile { .. })
    ));
}

#[test]
fn rounds_have_their_own_audits() {
    assert!(matches!(
        Bench::new().verify(Test::Test05, "v5.0"),
        Err(AuditError::NotInRound { .. })
    ));
    assert!(Bench::new().verify(Test::Test05, "v4.1").unwrap().passed());
    assert!("TEST02".parse::<Test>().is_err() && "double".parse::<Dtype>().is_err());
}

#[test]
fn verifying_again_writes_the_same() {
    let bench = Bench::new();
    bench.verify(Test::Test01, "v5.1").unwrap();
    let first = files(&bench.at("out"));
    assert_eq!(first.len(), 5);
    bench.verify(Test::Test01, "v5.1").unwrap();
    assert!(files(&bench.at("out")) == first);
}

#[test]
fn a_refused_run_leaves_what_the_script_leaves() {
    for (round, expected) in [
        ("v5.0", "Verifying performance.\n"),
        (
            "v6.1",
            "Verifying performance.\nTEST FAIL: Test results are invalid\n",
        ),
    ] {
        let bench = Bench::new();
        Run {
            valid: false,
            ..Run::new("Offline", "100")
        }
        .put(&bench.at("audit"));
        let report = bench.verify(Test::Test04, round).unwrap();
        assert!(!report.passed());
        assert_eq!(text(&bench.at("out/TEST04/verify_performance.txt")), expected);
    }
}

#[test]
fn runs_that_are_not_what_they_claim_are_observed() {
    let bench = Bench::new();
    let audit = Run {
        facts: vec![
            ("effective_test_mode", "\"AccuracyOnly\"".to_owned()),
            ("loadgen_version", "\"5.0 @ ffff\"".to_owned()),
            ("effective_performance_issue_same", "false".to_owned()),
        ],
        ..Run::new("Offline", "100")
    };
    audit.put(&bench.at("audit"));
    let report = bench.verify(Test::Test04, "v5.1").unwrap();
    assert!(report.passed(), "the official script sees nothing");
    let observed: Vec<_> = report
        .observations
        .iter()
        .map(|observation| {
            let name = observation.path.file_name().unwrap().to_str().unwrap();
            let line = observation
                .line
                .map_or_else(String::new, |line| format!(" line {line}"));
            format!("{name}{line}: {}", observation.message)
        })
        .collect();
    insta::assert_snapshot!(observed.join("\n"));

    // TEST05 with the seeds of the submission's run.
    let bench = Bench::new();
    let report = bench.verify(Test::Test05, "v4.1").unwrap();
    assert!(
        report.observations[0].message.contains("effective_qsl_rng_seed"),
        "{:?}",
        report.observations
    );

    // An honest TEST01.
    assert_eq!(
        Bench::new().verify(Test::Test01, "v5.1").unwrap().observations,
        []
    );

    // An accuracy run by another LoadGen, and a summary that tells of another run than the detail log beside it.
    let bench = Bench::new();
    let accuracy = Run {
        facts: vec![
            ("effective_test_mode", "\"PerformanceOnly\"".to_owned()),
            ("loadgen_version", "\"4.1 @ 0000\"".to_owned()),
        ],
        ..Run::new("Offline", "100")
    };
    accuracy.put(&bench.at("results/accuracy"));
    let summary = bench.at("audit/mlperf_log_summary.txt");
    put(
        &summary,
        text(&summary).replace("Mode     : PerformanceOnly", "Mode     : AccuracyOnly"),
    );
    let report = bench.verify(Test::Test01, "v5.1").unwrap();
    assert!(report.passed(), "the official script sees nothing");
    let observed: Vec<_> = report
        .observations
        .iter()
        .map(|observation| observation.message.as_str())
        .collect();
    insta::assert_snapshot!(observed.join("\n"), @r"
    effective_test_mode is `PerformanceOnly`, not `AccuracyOnly`
    loadgen_version is `4.1 @ 0000`, not `5.1 @ 0123456789`
    the summary says `AccuracyOnly`, effective_test_mode in the detail log is `PerformanceOnly`
    ");
}

#[test]
fn pipes_among_the_logs_are_named_and_not_waited_for() {
    for (place, round) in [
        ("audit/mlperf_log_summary.txt", "v2.1"),
        ("audit/mlperf_log_summary.txt", "v6.1"),
        ("audit/mlperf_log_detail.txt", "v6.1"),
        ("audit/mlperf_log_accuracy.json", "v6.1"),
        ("results/accuracy/mlperf_log_accuracy.json", "v6.1"),
        ("results/performance/run_1/mlperf_log_detail.txt", "v6.1"),
    ] {
        let bench = Bench::new();
        std::fs::remove_file(bench.at(place)).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(bench.at(place))
            .status()
            .unwrap();
        assert!(made.success());
        let said = told(&bench.verify(Test::Test01, round).unwrap_err(), bench.dir.path());
        assert!(said.contains(place), "{place} in {round}: {said}");
        assert!(said.contains("regular file"), "{place} in {round}: {said}");
    }
}
