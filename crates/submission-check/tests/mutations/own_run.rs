//! Tests of one measured run in two places of a submission: results that the rules derive from one run, and copies.

use std::path::Path;

use regatta_submission_check::{check::strict, tree::Tree};
use regatta_test_support::{published_results, round, tree};

const MEASURED: &str = "v6.0/closed/HPE/results/HPE_PROLIANT_DL145_RTX_PRO_4500_PCIE_32GBx1_TRT_TRT/resnet/MultiStream/performance";

/// Returns whether a run in the directories of two benchmarks is found. Both are named, because either may be the copy.
fn is_found(source: &Path, benchmarks: [&str; 2]) -> bool {
    let root = tempfile::tempdir().unwrap();
    for benchmark in benchmarks {
        let place = root.path().join(benchmark).join("MultiStream/performance");
        tree::copy(source, &place);
    }
    let report = strict(&Tree::scan(root.path()).unwrap(), &round("v6.0"));
    assert_eq!(report.facts.len(), 2, "both were looked at");
    let mut named: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.rule.starts_with("own-run: "))
        .collect();
    named.sort_by(|a, b| a.path.cmp(&b.path));
    match named.as_slice() {
        [] => false,
        [one, other] => {
            assert!(one.message.contains(&other.path) && other.message.contains(&one.path));
            assert!(report.results.iter().all(|row| !row.accepted));
            true
        }
        more => panic!("{more:#?}"),
    }
}

#[test]
fn run_may_serve_two_results_of_the_same_benchmark_and_system() {
    let Some(source) = published_results(MEASURED) else {
        return;
    };
    let first = "closed/A/results/System/yolo-95";
    for (second, found) in [
        ("closed/A/results/System/yolo-99", false),
        ("open/A/results/System/yolo-95", false),
        ("closed/A/results/System/retinanet", true),
        ("closed/A/results/Other/yolo-95", true),
        ("closed/B/results/System/yolo-95", true),
        ("open/B/results/System/yolo-95", true),
        ("open/A/results/Other/yolo-95", true),
    ] {
        assert_eq!(is_found(&source, [first, second]), found, "{second}");
    }
}
