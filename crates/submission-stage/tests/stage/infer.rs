//! Tests of inferred results: which the rules allow, which figure they need, and that everything else stays unchanged.

use std::path::Path;

use regatta_catalogue::round::{Layout, Round};
use regatta_submission_check::{check, tree::Tree};
use regatta_submission_stage::{
    DraftError,
    infer::{InferError, InferReport, InferRequest, SkippedPlace, infer},
};
use regatta_test_support::{
    round,
    staging::log,
    tree::{files, put},
};
use serde_json::json;
use tempfile::TempDir;

/// A tree with one result per named scenario of each model.
fn tree(round: &Round, kind: &str, models: &[(&str, &[&str])]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("tree/closed/ACME");
    put(
        &home.join("systems/board.json"),
        json!({ "system_type": kind, "division": "closed" }).to_string(),
    );
    for (model, scenarios) in models {
        for scenario in *scenarios {
            let below = format!("board/{model}/{scenario}");
            let run = home.join("results").join(&below).join("performance/run_1");
            put(&run.join("mlperf_log_detail.txt"), detail(scenario));
            if round.submission.layout == Layout::Classic {
                put(
                    &home.join("measurements").join(&below).join("user.conf"),
                    "# nothing\n",
                );
                put(
                    &home
                        .join("compliance")
                        .join(&below)
                        .join("TEST01/verify_accuracy.txt"),
                    "TEST PASS\n",
                );
                put(&home.join("code").join(model).join("main.cc"), "int main() {}\n");
            }
        }
    }
    dir
}

fn detail(scenario: &str) -> String {
    log(&[
        ("effective_scenario", json!(scenario)),
        ("early_stopping_latency_ms", json!(409_800)),
        ("result_qps_without_loadgen_overhead", json!(2534.53)),
        ("result_mean_query_latency_ns", json!(3_000_000)),
        ("effective_samples_per_query", json!(8)),
    ])
}

fn run(dir: &TempDir, round: &Round) -> Result<InferReport, InferError> {
    infer(&InferRequest {
        input: &dir.path().join("tree"),
        output: &dir.path().join("new"),
        submitter: None,
        round,
    })
}

fn targets(report: &InferReport) -> Vec<(&str, &str)> {
    fn short(path: &str) -> &str {
        path.strip_prefix("closed/ACME/results/board/").unwrap()
    }
    let list = report.inferred.iter();
    list.map(|result| (short(&result.from), short(&result.to)))
        .collect()
}

#[test]
fn both_layouts_get_copies_of_all_their_parts() {
    for (name, parts) in [
        ("v5.1", vec!["results", "measurements", "compliance"]),
        ("v6.0", vec!["results"]),
    ] {
        let round = round(name);
        let dir = tree(&round, "edge", &[("resnet50", &["SingleStream"])]);
        let report = run(&dir, &round).unwrap();
        assert_eq!(
            targets(&report),
            [
                ("resnet50/SingleStream", "resnet50/multistream"),
                ("resnet50/SingleStream", "resnet50/offline"),
            ]
        );
        assert_eq!(report.skipped, []);
        let (before, after) = (files(&dir.path().join("tree")), files(&dir.path().join("new")));
        for (path, bytes) in &before {
            assert_eq!(after.get(path), Some(bytes), "{path}");
        }
        let copies = before.iter().filter(|(path, _)| path.contains("/SingleStream/"));
        for (path, bytes) in copies {
            for to in ["/multistream/", "/offline/"] {
                assert_eq!(
                    after.get(&path.replace("/SingleStream/", to)),
                    Some(bytes),
                    "{path}"
                );
            }
        }
        for part in parts {
            assert!(
                after
                    .keys()
                    .any(|path| path.contains(part) && path.contains("/offline/")),
                "{part}"
            );
        }
        // The checker recognises them.
        let checked = check::strict(&Tree::scan(&dir.path().join("new")).unwrap(), &round);
        let inferred = checked
            .findings
            .iter()
            .filter(|finding| finding.message.contains("is inferred from"));
        assert_eq!(inferred.count(), 2);
        let value = |scenario: &str| {
            let row = checked.results.iter().find(|row| row.scenario == scenario);
            row.and_then(|row| row.result).unwrap()
        };
        assert!((value("MultiStream") - 3.2784).abs() < 1e-9 && (value("Offline") - 2534.53).abs() < 1e-9);
    }
}

#[test]
fn a_measured_multistream_is_the_better_base() {
    let round = round("v6.0");
    let dir = tree(&round, "edge", &[("resnet50", &["SingleStream", "MultiStream"])]);
    let report = run(&dir, &round).unwrap();
    assert_eq!(targets(&report), [("resnet50/MultiStream", "resnet50/offline")]);
}

#[test]
fn stricter_variant_is_used_for_the_other_with_its_inferred_results() {
    let round = round("v5.1");
    let dir = tree(
        &round,
        "edge",
        &[
            ("bert-99.9", &["SingleStream"]),
            ("resnet50", &["SingleStream", "MultiStream", "Offline"]),
        ],
    );
    let report = run(&dir, &round).unwrap();
    assert_eq!(
        targets(&report),
        [
            ("bert-99.9/SingleStream", "bert-99.9/offline"),
            ("bert-99.9", "bert-99"),
        ]
    );
    let after = files(&dir.path().join("new"));
    for path in [
        "results/board/bert-99/offline/performance/run_1/mlperf_log_detail.txt",
        "measurements/board/bert-99/SingleStream/user.conf",
        "compliance/board/bert-99/offline/TEST01/verify_accuracy.txt",
        "code/bert-99/main.cc",
    ] {
        assert!(after.contains_key(&format!("closed/ACME/{path}")), "{path}");
    }
}

#[test]
fn a_variant_that_the_round_has_dropped_is_neither_inferred_nor_fatal() {
    let round = round("v6.1");
    let models: [(&str, &[&str]); 2] = [("llama2-70b-99.9", &["Offline"]), ("llama2-70b-99", &["Offline"])];
    let dir = tree(&round, "datacenter", &models[..1]);
    let report = run(&dir, &round).unwrap();
    assert_eq!(report.inferred, []);
    let dropped = SkippedPlace {
        place: "closed/ACME/results/board/llama2-70b-99.9".to_owned(),
        reason: "v6.1 has no llama2-70b-99".to_owned(),
    };
    assert!(report.skipped.contains(&dropped), "{report:?}");
    assert_eq!(files(&dir.path().join("tree")), files(&dir.path().join("new")));
    // The tree that the official preprocessing makes of it has the dropped variant: the official checker ends there.
    let dir = tree(&round, "datacenter", &models);
    let report = run(&dir, &round).unwrap();
    assert_eq!(report.inferred, []);
    let preprocessed = Tree::scan(&dir.path().join("tree")).unwrap();
    let official = check::as_official(&preprocessed, &round, None).unwrap();
    assert!(
        matches!(official.verdict, check::Verdict::Crash(_)),
        "{:?}",
        official.verdict
    );
    let strict = check::strict(&preprocessed, &round);
    let named = strict
        .findings
        .iter()
        .find(|finding| finding.rule.starts_with("benchmark: "))
        .unwrap();
    assert!(
        named.path.ends_with("llama2-70b-99") && named.fix.contains("llama2-70b-99.9"),
        "{named:?}"
    );
}

#[test]
fn results_that_may_not_be_inferred_are_named() {
    let round = round("v6.1");
    let reason = |kind: &str, model: &str, scenarios: &[&str], change: &dyn Fn(&Path)| {
        let dir = tree(&round, kind, &[(model, scenarios)]);
        change(&dir.path().join("tree/closed/ACME/results/board").join(model));
        let report = run(&dir, &round).unwrap();
        assert_eq!(report.inferred, [], "{report:?}");
        report
            .skipped
            .into_iter()
            .map(|skipped| skipped.reason)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let nothing = |_: &Path| {};
    let output = reason("datacenter", "resnet50", &["SingleStream"], &nothing);
    assert!(output.contains("only results of edge systems"), "{output}");
    let output = reason("edge", "resnet50", &["Offline"], &nothing);
    assert!(output.contains("may be used for SingleStream"), "{output}");
    let output = reason("edge", "llama3.1-8b-edge", &["SingleStream"], &nothing);
    assert!(output.contains("counted otherwise"), "{output}");
    let few = |model: &Path| {
        let path = model.join("SingleStream/performance/run_1/mlperf_log_detail.txt");
        put(
            &path,
            detail("SingleStream")
                .replace("409800", "0")
                .replace("2534.53", "0"),
        );
    };
    let output = reason("edge", "resnet50", &["SingleStream"], &few);
    assert!(output.contains("too few queries"), "{output}");
    let inferred = |model: &Path| {
        let path = model.join("SingleStream/performance/run_1/mlperf_log_detail.txt");
        put(&path, detail("Offline"));
    };
    let output = reason("edge", "resnet50", &["SingleStream"], &inferred);
    assert!(output.contains("not measured itself"), "{output}");
    let broken = |model: &Path| {
        let path = model.join("SingleStream/performance/run_1/mlperf_log_detail.txt");
        put(&path, ":::MLLOG {\n");
    };
    let output = reason("edge", "resnet50", &["SingleStream"], &broken);
    assert!(output.contains("cannot be parsed"), "{output}");
}

#[test]
fn infer_refuses_existing_output_and_removes_partial_output() {
    let round = round("v6.0");
    let dir = tree(&round, "edge", &[("resnet50", &["SingleStream"])]);
    run(&dir, &round).unwrap();
    let first = files(&dir.path().join("new"));
    let error = run(&dir, &round).unwrap_err();
    assert!(
        matches!(error, InferError::Draft(DraftError::Exists { .. })),
        "{error}"
    );
    assert!(first == files(&dir.path().join("new")));
    // A circle of links is refused, not followed.
    let dir = tree(&round, "edge", &[("resnet50", &["SingleStream"])]);
    std::os::unix::fs::symlink(".", dir.path().join("tree/closed/ACME/loop")).unwrap();
    let error = run(&dir, &round).unwrap_err();
    assert!(matches!(error, InferError::File(_)), "{error}");
    assert!(!dir.path().join("new").exists());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    // A pipe is named, and neither waited for nor silently left out.
    let home = dir.path().join("tree/closed/ACME");
    std::fs::remove_file(home.join("loop")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(home.join("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let error = run(&dir, &round).unwrap_err();
    assert!(error.to_string().contains("closed/ACME/pipe"), "{error}");
    assert!(!dir.path().join("new").exists());
    std::fs::remove_file(home.join("pipe")).unwrap();
    for inside in ["tree", "tree/new", "tree/closed/new/deep"] {
        let error = infer(&InferRequest {
            input: &dir.path().join("tree"),
            output: &dir.path().join(inside),
            submitter: None,
            round: &round,
        });
        assert!(matches!(error, Err(InferError::Inside { .. })), "{error:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path().join("tree")).unwrap().count(), 1);
    let nobody = infer(&InferRequest {
        input: &dir.path().join("tree"),
        output: &dir.path().join("new"),
        submitter: Some("nobody"),
        round: &round,
    });
    assert!(
        matches!(nobody, Err(InferError::NoSubmission { .. })),
        "{nobody:?}"
    );
}
