//! Tests of refusals: all at once, each with its place, and without a tree.

use std::{
    fs,
    path::{Path, PathBuf},
};

use regatta_submission_stage::stage::{Answers, Kind, StageError, StagingFinding};
use regatta_test_support::staging::{Parts, StagingFixture, id};
use regatta_types::{
    Division, Mode,
    documents::{AuditOf, EngineKind, LoadgenChoice, RunLength},
};

const DIVISIONS: [Division; 3] = [Division::Closed, Division::Open, Division::Network];

/// Returns the findings of a refused submission, which leaves no files.
fn refused(
    fixture: &StagingFixture,
    division: Division,
    answers: &Answers,
    runs: &[PathBuf],
) -> Vec<StagingFinding> {
    match fixture.stage(division, Kind::Submission, answers, runs) {
        Err(StageError::Refused { findings }) => {
            assert_eq!(fixture.left_behind(), [""; 0]);
            findings
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn jobs_without_measurement_are_refused_in_every_division() {
    type Change = fn(&mut Parts);
    let cases: [(&str, Change); 8] = [
        ("own LoadGen", |parts| {
            parts.spec.loadgen = LoadgenChoice::Native;
        }),
        ("run by regatta-loadgen", |parts| {
            parts.evidence["attempts"][0]["loadgen"]["implementation"] = "regatta-loadgen".into();
        }),
        ("does not accept LoadGen 6.0.17 of revision NA", |parts| {
            parts.evidence["attempts"][0]["loadgen"]["revision"] = "NA".into();
        }),
        // The commit is of v6.0.
        (
            "round v6.1 does not accept LoadGen 6.0.17 of revision 9142ef0e74",
            |parts| {
                parts.evidence["attempts"][0]["loadgen"]["revision"] = "9142ef0e74".into();
            },
        ),
        ("sim engine", |parts| parts.spec.engine.kind = EngineKind::Sim),
        ("a pretend power meter", |parts| {
            parts.evidence["not_a_measurement"] = vec!["a pretend power meter"].into();
        }),
        ("it proves the installation", |parts| {
            parts.spec.benchmark.not_submittable = Some("it proves the installation".to_owned());
        }),
        ("full length", |parts| parts.spec.length = RunLength::TestRun),
    ];
    for (output, change) in cases {
        for mode in [Mode::PerformanceOnly, Mode::AccuracyOnly] {
            // An accuracy run has every sample once, however short: no duration is required of it.
            if output == "full length" && mode == Mode::AccuracyOnly {
                continue;
            }
            let fixture = StagingFixture::new("v6.1");
            let answers = fixture.answers(|text| text);
            let mut runs = fixture.all_runs();
            let number = if mode == Mode::PerformanceOnly { 1 } else { 2 };
            runs[number as usize - 1] = fixture.run(number, mode, change);
            for division in DIVISIONS {
                let findings = refused(&fixture, division, &answers, &runs);
                let reported = |finding: &&StagingFinding| {
                    finding.what.contains(output) && finding.place.contains(&id(number))
                };
                assert!(
                    findings.iter().any(|finding| reported(&finding)),
                    "{division}: {output}: {findings:#?}"
                );
            }
        }
    }
}

#[test]
fn a_run_of_both_modes_is_refused_with_the_reason_and_the_command() {
    let fixture = StagingFixture::new("v6.1");
    let answers = fixture.answers(|text| text);
    let runs = [fixture.run(1, Mode::SubmissionRun, |_| {})];
    for kind in [Kind::Submission, Kind::Rehearsal] {
        let findings = match fixture.stage(Division::Closed, kind, &answers, &runs) {
            Err(StageError::Refused { findings }) => findings,
            other => panic!("{other:?}"),
        };
        let found = findings.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(
            found.iter().any(|finding| {
                finding.contains("(whisper, Offline, SubmissionRun) has both modes in one log")
                    && finding.contains("--mode AccuracyOnly,PerformanceOnly")
            }),
            "{found:#?}"
        );
    }
}

#[test]
fn everything_that_is_missing_is_listed_at_once() {
    let fixture = StagingFixture::new("v6.1");
    let runs = [
        fixture.run(1, Mode::PerformanceOnly, |_| {}),
        fixture.run(2, Mode::AccuracyOnly, |_| {}),
    ];
    let findings = refused(&fixture, Division::Closed, &Answers::default(), &runs);
    let list: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    let list = list.replace(&fixture.at("").display().to_string(), "BENCH/");
    insta::assert_snapshot!(list);
    let requested = findings
        .iter()
        .filter(|finding| finding.question.is_some())
        .count();
    assert_eq!(
        requested,
        findings.len() - 5,
        "what only runs and files can fix is not expected"
    );
}

#[test]
fn invalid_runs_are_refused_with_the_reason() {
    type Change = fn(&mut Parts);
    let cases: [(&str, Change); 9] = [
        ("INVALID (too slow)", |parts| {
            let attempt = &mut parts.evidence["attempts"][0];
            attempt["valid"] = false.into();
            attempt["invalid_reasons"] = vec!["too slow"].into();
        }),
        ("it is failed, not done", |parts| {
            parts.record["state"]["phase"] = "failed".into();
        }),
        ("not all here", |parts| {
            parts.record["delivery"]["complete"] = false.into()
        }),
        ("does not say that the evidence is signed", |parts| {
            parts.record["evidence_signature_valid"] = false.into();
        }),
        ("sealed as failed", |parts| {
            parts.evidence["outcome"]["phase"] = "failed".into();
        }),
        ("names device 0000", |parts| {
            parts.evidence["device"] = "0".repeat(32).into();
        }),
        ("different runs", |parts| parts.record["run"] = id(7).into()),
        ("by the rules of v6.0", |parts| {
            parts.spec.round = "v6.0".to_owned()
        }),
        ("it has no mlperf_log_detail.txt", |parts| {
            parts.files.remove("mlperf_log_detail.txt");
        }),
    ];
    for (output, change) in cases {
        let fixture = StagingFixture::new("v6.1");
        let answers = fixture.answers(|text| text);
        let mut runs = fixture.all_runs();
        runs[0] = fixture.run(1, Mode::PerformanceOnly, change);
        let findings = refused(&fixture, Division::Closed, &answers, &runs);
        assert!(
            findings.iter().any(|finding| finding.what.contains(output)),
            "{output}: {findings:#?}"
        );
    }
}

#[test]
fn an_accuracy_log_that_lacks_a_sample_is_refused() {
    for kind in [Kind::Submission, Kind::Rehearsal] {
        let fixture = StagingFixture::new("v6.1");
        let answers = fixture.answers(|text| text);
        let mut runs = fixture.all_runs();
        runs[1] = fixture.changed_accuracy_run(2, |parts| {
            let log = parts.files.get_mut("mlperf_log_accuracy.json").unwrap();
            *log = log.replace("\"qsl_idx\" : 3,", "\"qsl_idx\" : 4,");
        });
        let error = fixture
            .stage(Division::Closed, kind, &answers, &runs)
            .unwrap_err();
        let what = "its accuracy log has no response for 1 of 597 samples";
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn a_file_that_changed_after_delivery_stops_it() {
    for (run, name) in [
        (1, "mlperf_log_detail.txt"),
        (2, "mlperf_log_accuracy.json"),
        (3, "mlperf_log_accuracy.json"),
    ] {
        let fixture = StagingFixture::new("v6.1");
        let (answers, runs) = (fixture.answers(|text| text), fixture.all_runs());
        let path = runs[run - 1].join("files").join(name);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen('0', "1", 1)).unwrap();
        let error = fixture.stage(Division::Closed, Kind::Submission, &answers, &runs);
        assert!(
            matches!(&error, Err(StageError::NotProven { path: found, .. }) if *found == path),
            "{error:?}"
        );
        assert_eq!(fixture.left_behind(), [""; 0]);
    }
}

#[test]
fn staging_needs_the_reference_scripts_output_for_this_log() {
    let fixture = StagingFixture::new("v6.1");
    let (answers, runs) = (fixture.answers(|text| text), fixture.all_runs());
    let kept = runs[1].join("accuracy");
    let output =
        |findings: &[StagingFinding], part: &str| findings.iter().any(|finding| finding.what.contains(part));

    fs::write(kept.join("accuracy.txt"), "accuracy=100%\n").unwrap();
    let findings = refused(&fixture, Division::Closed, &answers, &runs);
    assert!(
        output(&findings, "changed after the script wrote it"),
        "{findings:#?}"
    );
    fs::remove_file(kept.join("official.json")).unwrap();
    let findings = refused(&fixture, Division::Closed, &answers, &runs);
    assert!(output(&findings, "its origin is not known"), "{findings:#?}");
    fs::remove_dir_all(&kept).unwrap();
    let findings = refused(&fixture, Division::Closed, &answers, &runs);
    assert!(output(&findings, "output is missing"), "{findings:#?}");
    assert!(
        findings.iter().any(|finding| finding.fix.contains("--official")),
        "{findings:#?}"
    );
}

#[test]
fn an_audit_that_fails_or_is_of_another_run_is_refused() {
    let fixture = StagingFixture::new("v6.1");
    let (answers, mut runs) = (fixture.answers(|text| text), fixture.all_runs());
    let audit = runs.pop().unwrap();
    let findings = refused(&fixture, Division::Closed, &answers, &runs);
    assert!(
        findings[0].what.contains("TEST01") && findings.len() == 1,
        "{findings:#?}"
    );
    // A newer performance run has no audit of its own.
    runs.push(audit);
    runs.push(fixture.run(8, Mode::PerformanceOnly, |_| {}));
    let findings = refused(&fixture, Division::Closed, &answers, &runs);
    assert!(findings[0].place.contains(&id(8)), "{findings:#?}");
    runs.pop();
    // Another answer than in the accuracy run.
    let spec = fs::read_to_string(runs[2].join("spec.json")).unwrap();
    runs[2] = fixture.run(3, Mode::PerformanceOnly, |parts| {
        parts.spec = serde_json::from_str(&spec).unwrap();
        let log = "[\n{ \"seq_id\" : 0, \"qsl_idx\" : 0, \"data\" : \"ff00000000000000\" }\n]\n";
        parts.files.insert("mlperf_log_accuracy.json", log.to_owned());
    });
    let findings = refused(&fixture, Division::Closed, &answers, &runs);
    assert!(findings[0].what.contains("TEST01 fails"), "{findings:#?}");
}

#[test]
fn an_audit_that_is_recorded_as_failed_is_listed_beside_everything_else_that_is_missing() {
    let fixture = StagingFixture::new("v6.1");
    let mut runs = fixture.all_runs();
    let spec = fs::read_to_string(runs[2].join("spec.json")).unwrap();
    runs[2] = fixture.run(3, Mode::PerformanceOnly, |parts| {
        parts.spec = serde_json::from_str(&spec).unwrap();
        let mut audit = serde_json::to_value(&parts.spec.audit).unwrap();
        audit["passed"] = false.into();
        audit["mismatch"] = "the target latency is 15 ms here and 20 ms there".into();
        parts.record["audit"] = audit;
    });
    let answers = fixture.answers(|text| text.replace("submitter = \"ACME\"\n", ""));
    let findings = refused(&fixture, Division::Closed, &answers, &runs);
    let of_audit = findings
        .iter()
        .find(|finding| finding.what.contains("TEST01 fails"));
    let of_audit = of_audit.unwrap_or_else(|| panic!("{findings:#?}"));
    assert!(of_audit.what.contains("20 ms there"), "{of_audit}");
    assert!(of_audit.fix.contains("regatta audit run TEST01"), "{of_audit}");
    assert!(
        findings.len() > 1,
        "the submitter is missing as well: {findings:#?}"
    );
    // A rehearsal has its verdict from the tree.
    let staged = fixture.stage(Division::Closed, Kind::Rehearsal, &answers, &runs);
    assert!(staged.is_ok(), "{staged:?}");
}

#[test]
fn forbidden_files_are_reported_before_anything_is_written() {
    let fixture = StagingFixture::new("v6.1");
    let (answers, runs) = (fixture.answers(|text| text), fixture.all_runs());
    fixture.put("desk/code/with space.txt", "x");
    std::os::unix::fs::symlink("main.cc", fixture.at("desk/code/link.cc")).unwrap();
    let findings = refused(&fixture, Division::Closed, &answers, &runs);
    let output: Vec<_> = findings.iter().map(|finding| finding.what.as_str()).collect();
    assert!(
        output.len() == 2 && output[0].contains("link.cc is a link"),
        "{output:?}"
    );
    assert!(
        output[1].contains("with space.txt has a name with spaces"),
        "{output:?}"
    );

    let named = fixture.answers(|text| {
        text.replace("\"ACME\"", "\"../ACME\"")
            .replace("\"Orin\"\ndevices", "\"O/n\"\ndevices")
    });
    let findings = refused(&fixture, Division::Closed, &named, &runs);
    let places: Vec<_> = findings.iter().map(|finding| finding.place.as_str()).collect();
    assert!(
        places.contains(&"answers: submitter") && places.contains(&"system O/n"),
        "{places:?}"
    );
}

#[test]
fn the_conf_of_the_loadgen_that_ran_is_found_by_its_hash_or_requested() {
    let fixture = StagingFixture::new("v6.1");
    let (answers, runs) = (fixture.answers(|text| text), fixture.all_runs());
    fixture.put("desk/mlperf.conf", "# edited\n");
    let findings = refused(&fixture, Division::Closed, &answers, &runs);
    assert!(
        findings[0].what.contains("mlperf.conf of LoadGen 6.0.17"),
        "{findings:#?}"
    );
    assert!(findings[0].fix.contains("mlperf_confs"), "{findings:#?}");
}

#[test]
fn only_the_devices_own_signature_proves_a_run() {
    type Change = fn(&Path);
    let cases: [(&str, Change); 5] = [
        // `record.json` still says that the signature is valid.
        ("evidence.sig does not match", |run| {
            let signature = fs::read_to_string(run.join("files/evidence.sig")).unwrap();
            fs::write(
                run.join("files/evidence.sig"),
                "ab".repeat(signature.trim().len() / 2),
            )
            .unwrap();
        }),
        ("there is no evidence.sig", |run| {
            fs::remove_file(run.join("files/evidence.sig")).unwrap();
        }),
        ("the public key is that of device", |run| {
            fs::write(run.join("device.pub"), "ab".repeat(32)).unwrap();
        }),
        ("unknown public key of the run's device", |run| {
            fs::remove_file(run.join("device.pub")).unwrap();
        }),
        ("has no public key", |run| {
            fs::write(run.join("device.pub"), "no key").unwrap();
        }),
    ];
    for (output, change) in cases {
        let fixture = StagingFixture::new("v6.1");
        let answers = fixture.answers(|text| text);
        let runs = fixture.all_runs();
        change(&runs[0]);
        let findings = refused(&fixture, Division::Closed, &answers, &runs);
        assert!(
            findings
                .iter()
                .any(|finding| finding.what.contains(output) && finding.place.contains(&id(1))),
            "{output}: {findings:#?}"
        );
        let rehearsed = fixture
            .stage(Division::Closed, Kind::Rehearsal, &answers, &runs)
            .unwrap();
        assert!(
            rehearsed.notes.iter().any(|note| note.contains(output)),
            "{output}: {rehearsed:#?}"
        );
    }
}

#[test]
fn a_log_that_was_put_into_an_audit_afterwards_is_refused() {
    let fixture = StagingFixture::new("v6.1");
    let answers = fixture.answers(|text| text);
    let mut runs = fixture.all_runs();
    runs[2] = fixture.run(3, Mode::PerformanceOnly, |parts| {
        parts.spec.audit = Some(AuditOf {
            test: "TEST01".to_owned(),
            performance: id(1).parse().unwrap(),
            accuracy: Some(id(2).parse().unwrap()),
        });
        parts.spec.conf.audit_config = Some("*.*.mode = 2\n".to_owned());
        parts.files.remove("mlperf_log_accuracy.json");
    });
    fs::write(runs[2].join("files/mlperf_log_accuracy.json"), "[\n]\n").unwrap();
    match fixture.stage(Division::Closed, Kind::Submission, &answers, &runs) {
        Err(StageError::NotListed { path }) => assert!(path.starts_with(&runs[2])),
        other => panic!("{other:?}"),
    }
}
