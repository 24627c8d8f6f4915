//! Tests of TEST01's part III: accuracies in place of differing responses.

use std::{cell::RefCell, path::Path};

use regatta_catalogue::known;
use regatta_submission_stage::audit::{
    AuditError, AuditReport, AuditRequest, Audited, Dtype, Test,
    part_three::{compare_accuracies, limits},
    verify,
};
use regatta_test_support::{round, tree::files};
use regatta_types::benchmark::Benchmark;

use crate::logs::{Run, put_accuracy, text};

fn benchmark(name: &str) -> Benchmark {
    let mut benchmark = known::benchmarks().unwrap().remove(0);
    name.clone_into(&mut benchmark.name);
    benchmark
}

/// A TEST01 of which one response in 60 differs, with a script that prints these accuracies for baseline and audit.
fn verified(name: &str, printed: [&str; 2]) -> Result<(AuditReport, tempfile::TempDir), AuditError> {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &str| dir.path().join(path);
    let run = Run::new("Offline", "100");
    run.put(&at("results/performance/run_1"));
    run.put(&at("audit"));
    let entries: Vec<_> = (0..90).map(|sample| (sample, vec![sample as u8])).collect();
    let mut audited = entries[10..70].to_vec();
    audited[5].1[0] = 99;
    put_accuracy(&at("results/accuracy/mlperf_log_accuracy.json"), &entries);
    put_accuracy(&at("audit/mlperf_log_accuracy.json"), &audited);

    let round = round("v5.1");
    let request = AuditRequest {
        test: Test::Test01,
        audited: &Audited::in_results(&at("results")),
        compliance: &at("audit"),
        output: &at("out"),
        dtype: Dtype::Byte,
        round: &round,
    };
    let mut report = verify(&request)?;
    assert!(report.needs_accuracies() && !report.passed());
    let seen = RefCell::new(Vec::new());
    let mut script = |log: &Path| {
        let mut seen = seen.borrow_mut();
        seen.push(text(log).matches("qsl_idx").count());
        let printed = printed[seen.len() - 1];
        if printed.is_empty() {
            return Err("no labels".into());
        }
        Ok(format!("loading ...\n{printed}\n"))
    };
    let limits = limits(&round, &benchmark(name));
    report.accuracies = compare_accuracies(&request, &limits, &at("baseline.json"), &mut script)?;
    assert_eq!(*seen.borrow(), [60, 60], "both logs hold the same samples");
    Ok((report, dir))
}

#[test]
fn close_accuracies_are_accepted_instead_of_responses() {
    let lines = [
        "accuracy=76.500%, good=46, total=60",
        "accuracy=76.000%, good=46, total=60",
    ];
    let (report, dir) = verified("resnet50", lines).unwrap();
    assert!(report.passed(), "{:?}", report.accuracies);
    let out = files(&dir.path().join("out/TEST01"));
    let names: Vec<_> = out.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "accuracy/accuracy.txt",
            "accuracy/baseline_accuracy.txt",
            "accuracy/compliance_accuracy.txt",
            "accuracy/mlperf_log_accuracy.json",
            "performance/run_1/mlperf_log_detail.txt",
            "performance/run_1/mlperf_log_summary.txt",
            "verify_accuracy.txt",
            "verify_performance.txt",
        ],
        "what the checkers ask for, and no more"
    );
    assert_eq!(
        text(&dir.path().join("out/TEST01/accuracy/baseline_accuracy.txt")),
        format!("loading ...\n{}\n", lines[0])
    );
    assert!(text(&dir.path().join("out/TEST01/verify_accuracy.txt")).contains("TEST FAIL"));
}

#[test]
fn the_limit_is_the_rounds() {
    let passes = |name: &str, printed: [&str; 2]| verified(name, printed).unwrap().0.passed();
    let acc = |one: &'static str, other: &'static str| [one, other];
    // One percent, either way, and the checkers divide by the audit's.
    assert!(passes("resnet50", acc("accuracy=75.241", "accuracy=76.000")));
    assert!(!passes("resnet50", acc("accuracy=75.239", "accuracy=76.000")));
    assert!(!passes("resnet50", acc("accuracy=76.761", "accuracy=76.000")));
    // A tenth for 99.9.
    let f1 = [
        "{\"exact_match\": 83.1, \"f1\": 90.8}",
        "{\"exact_match\": 83.1, \"f1\": 90.9}",
    ];
    assert!(passes("bert-99", f1) && !passes("bert-99.9", f1));
    // Two percent of FID, one of CLIP: each metric counts.
    let images = |fid: &str| format!("{{'CLIP_SCORE': 31.7, 'FID_SCORE': {fid}}}");
    assert!(passes("stable-diffusion-xl", [&images("23.0"), &images("23.4")]));
    assert!(!passes("stable-diffusion-xl", [&images("23.0"), &images("23.6")]));
    assert!(!passes(
        "stable-diffusion-xl",
        [&images("23.0"), "{'CLIP_SCORE': 31.7}"]
    ));
    // A benchmark of no round has its own metric.
    assert!(passes("digits", acc("accuracy=98.9", "accuracy=98.0")));
    // A value that is not there, or zero.
    assert!(!passes("resnet50", acc("accuracy=76.0", "no accuracy today")));
    assert!(!passes("resnet50", acc("accuracy=0.0", "accuracy=0.0")));
}

#[test]
fn a_script_that_fails_is_reported_with_its_log() {
    let error = verified("resnet50", ["", ""]).map(drop).unwrap_err();
    assert!(error.to_string().ends_with("baseline.json"), "{error}");
    assert!(std::error::Error::source(&error).unwrap().to_string() == "no labels");
}
