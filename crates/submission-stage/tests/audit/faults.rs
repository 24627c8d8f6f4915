//! Tests of wrong logs and runs in audits.

use std::{error::Error, path::Path};

use regatta_submission_stage::audit::{AuditError, AuditReport, AuditRequest, Audited, Dtype, Test, verify};
use regatta_test_support::{
    round,
    tree::{files, put},
};

use crate::logs::{Run, put_accuracy, text};

struct AuditFixture {
    dir: tempfile::TempDir,
}

impl AuditFixture {
    fn new() -> Self {
        let fixture = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let run = Run::new("Offline", "100");
        run.put(&fixture.at("results/performance/run_1"));
        run.put(&fixture.at("audit"));
        let entries: Vec<_> = (0..10).map(|index| (index, vec![index as u8, 0, 0, 0])).collect();
        put_accuracy(&fixture.at("results/accuracy/mlperf_log_accuracy.json"), &entries);
        put_accuracy(&fixture.at("audit/mlperf_log_accuracy.json"), &entries[3..7]);
        fixture
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join(path)
    }

    fn verify(&self, test: Test, name: &str) -> Result<AuditReport, AuditError> {
        verify(&AuditRequest {
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
fn reported(error: &AuditError, below: &Path) -> String {
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
        let fixture = AuditFixture::new();
        put(&fixture.at(path), content);
        let (test, round) = if path.ends_with("summary.txt") {
            (Test::Test04, "v5.0")
        } else {
            (Test::Test01, "v5.1")
        };
        let error = fixture.verify(test, round).unwrap_err();
        all.push_str(&format!("{what}: {}\n", reported(&error, fixture.dir.path())));
        assert!(!fixture.at("out").exists(), "{what}: nothing is written");
    }
    for missing in [
        "results/performance/run_1/mlperf_log_detail.txt",
        "audit/mlperf_log_accuracy.json",
    ] {
        let fixture = AuditFixture::new();
        std::fs::remove_file(fixture.at(missing)).unwrap();
        let error = fixture.verify(Test::Test01, "v5.1").unwrap_err();
        all.push_str(&format!("missing: {}\n", reported(&error, fixture.dir.path())));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_log_is_not_compared_with_itself() {
    let fixture = AuditFixture::new();
    std::fs::remove_file(fixture.at("audit/mlperf_log_accuracy.json")).unwrap();
    std::os::unix::fs::symlink(
        fixture.at("results/accuracy/mlperf_log_accuracy.json"),
        fixture.at("audit/mlperf_log_accuracy.json"),
    )
    .unwrap();
    assert!(matches!(
        fixture.verify(Test::Test01, "v5.1"),
        Err(AuditError::SameFile { .. })
    ));
}

#[test]
fn rounds_have_their_own_audits() {
    assert!(matches!(
        AuditFixture::new().verify(Test::Test05, "v5.0"),
        Err(AuditError::NotInRound { .. })
    ));
    assert!(AuditFixture::new().verify(Test::Test05, "v4.1").unwrap().passed());
    assert!("TEST02".parse::<Test>().is_err() && "double".parse::<Dtype>().is_err());
}

#[test]
fn verifying_again_writes_the_same() {
    let fixture = AuditFixture::new();
    fixture.verify(Test::Test01, "v5.1").unwrap();
    let first = files(&fixture.at("out"));
    assert_eq!(first.len(), 5);
    fixture.verify(Test::Test01, "v5.1").unwrap();
    assert!(files(&fixture.at("out")) == first);
}

#[test]
fn refused_verification_writes_the_scripts_files() {
    for (round, expected) in [
        ("v5.0", "Verifying performance.\n"),
        (
            "v6.1",
            "Verifying performance.\nTEST FAIL: Test results are invalid\n",
        ),
    ] {
        let fixture = AuditFixture::new();
        Run {
            valid: false,
            ..Run::new("Offline", "100")
        }
        .put(&fixture.at("audit"));
        let report = fixture.verify(Test::Test04, round).unwrap();
        assert!(!report.passed());
        assert_eq!(text(&fixture.at("out/TEST04/verify_performance.txt")), expected);
    }
}

#[test]
fn runs_that_are_not_what_they_claim_are_observed() {
    let fixture = AuditFixture::new();
    let audit = Run {
        facts: vec![
            ("effective_test_mode", "\"AccuracyOnly\"".to_owned()),
            ("loadgen_version", "\"5.0 @ ffff\"".to_owned()),
            ("effective_performance_issue_same", "false".to_owned()),
        ],
        ..Run::new("Offline", "100")
    };
    audit.put(&fixture.at("audit"));
    let report = fixture.verify(Test::Test04, "v5.1").unwrap();
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
    let fixture = AuditFixture::new();
    let report = fixture.verify(Test::Test05, "v4.1").unwrap();
    assert!(
        report.observations[0].message.contains("effective_qsl_rng_seed"),
        "{:?}",
        report.observations
    );

    // An honest TEST01.
    assert_eq!(
        AuditFixture::new()
            .verify(Test::Test01, "v5.1")
            .unwrap()
            .observations,
        []
    );

    // An accuracy run by another LoadGen, and a summary of another run than its detail log.
    let fixture = AuditFixture::new();
    let accuracy = Run {
        facts: vec![
            ("effective_test_mode", "\"PerformanceOnly\"".to_owned()),
            ("loadgen_version", "\"4.1 @ 0000\"".to_owned()),
        ],
        ..Run::new("Offline", "100")
    };
    accuracy.put(&fixture.at("results/accuracy"));
    let summary = fixture.at("audit/mlperf_log_summary.txt");
    put(
        &summary,
        text(&summary).replace("Mode     : PerformanceOnly", "Mode     : AccuracyOnly"),
    );
    let report = fixture.verify(Test::Test01, "v5.1").unwrap();
    assert!(report.passed(), "the official script sees nothing");
    let observed: Vec<_> = report
        .observations
        .iter()
        .map(|observation| observation.message.as_str())
        .collect();
    insta::assert_snapshot!(observed.join("\n"), @r"
    effective_test_mode is `PerformanceOnly`, not `AccuracyOnly`
    loadgen_version is `4.1 @ 0000`, not `5.1 @ 0123456789`
    the summary has `AccuracyOnly`, effective_test_mode in the detail log is `PerformanceOnly`
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
        let fixture = AuditFixture::new();
        std::fs::remove_file(fixture.at(place)).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(fixture.at(place))
            .status()
            .unwrap();
        assert!(made.success());
        let output = reported(
            &fixture.verify(Test::Test01, round).unwrap_err(),
            fixture.dir.path(),
        );
        assert!(output.contains(place), "{place} in {round}: {output}");
        assert!(output.contains("regular file"), "{place} in {round}: {output}");
    }
}
