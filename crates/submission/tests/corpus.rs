//! Tests that published submissions are judged as by their official checkers: every row, to the letter.

#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]

use std::{collections::BTreeSet, fs};

use regatta_submission::{
    check::{Severity, Verdict, as_official, csv, strict},
    tree::Tree,
};
use regatta_test_support::{official_answers, published_results, round};

/// Judges a round's trees and compares all rows, whatever their order, with those that the official checker wrote.
fn compare(round_name: &str, revision: &str, expected_rows: usize) {
    let answers = format!(
        "{round_name}/expected/{}",
        if revision.starts_with("head") {
            "head-b66003e1"
        } else {
            revision
        }
    );
    let (Some(directory), Some(answers)) = (published_results(round_name), official_answers(&answers)) else {
        return;
    };
    let round = round(round_name);
    // The official outputs are beside the trees; a submission root has neither.
    let root = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(directory.join("closed"), root.path().join("closed")).unwrap();
    let tree = Tree::scan(root.path()).unwrap();
    let official = as_official(&tree, &round, Some(revision)).unwrap();
    let ours = csv(&official.checker, &round.name, &official.rows);
    let theirs = fs::read_to_string(answers.join("summary.csv")).unwrap();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (ours, theirs) = (lines(&ours), lines(&theirs));
    let missing: Vec<_> = theirs.difference(&ours).collect();
    let extra: Vec<_> = ours.difference(&theirs).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "missing {missing:#?}\nextra {extra:#?}\nnotes {:#?}",
        official.notes
    );
    assert_eq!(theirs.len(), expected_rows + 1);
    assert_eq!(official.verdict, Verdict::Accept);
    let log = fs::read_to_string(answers.join("log.txt")).unwrap();
    for line in official.summary.iter().filter(|line| line.contains("Results ")) {
        assert!(log.contains(line.as_str()), "{line}");
    }
}

#[test]
fn v2_1_as_its_own_checker() {
    compare("v2.1", "v2.1", 48);
}

#[test]
fn v5_1_as_its_own_checker() {
    compare("v5.1", "v5.1.1", 5);
}

#[test]
fn v5_1_as_the_package() {
    compare("v5.1", "head-b66003e1", 5);
}

#[test]
fn v6_0_as_the_package() {
    compare("v6.0", "head-b66003e1", 8);
}

/// Returns the strict check's findings in a round's published trees: rule and path of each error, number of warnings.
fn strict_errors(round_name: &str) -> Option<(Vec<String>, usize)> {
    let directory = published_results(round_name)?;
    let root = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(directory.join("closed"), root.path().join("closed")).unwrap();
    let report = strict(&Tree::scan(root.path()).unwrap(), &round(round_name));
    let (errors, rest): (Vec<_>, Vec<_>) = report
        .findings
        .iter()
        .partition(|finding| finding.severity == Severity::Error);
    let warnings = rest
        .iter()
        .filter(|finding| finding.severity == Severity::Warning);
    let errors = errors.iter().map(|finding| {
        format!(
            "{} {}",
            finding.rule.split(':').next().unwrap_or_default(),
            finding.path
        )
    });
    Some((errors.collect(), warnings.count()))
}

#[test]
fn published_trees_are_in_order_but_for_what_is_really_wrong() {
    // v2.1: measurements and tests of benchmarks that were not submitted, accuracy runs with a library of another size than
    // the performance runs', and Krai's meter that nobody described.
    if let Some((errors, warnings)) = strict_errors("v2.1") {
        assert_eq!((errors.len(), warnings), (0, 30), "{errors:#?}");
    }
    // v5.1: runs of one result made with different LoadGens; measurements and tests without results.
    if let Some((errors, warnings)) = strict_errors("v5.1") {
        assert!(errors.is_empty() && warnings > 0, "{errors:#?}");
    }
    // v6.0: the tests of one Offline result were verified against a run of 19114.1 samples/s; the submitted run has 19210.7.
    if let Some((errors, _)) = strict_errors("v6.0") {
        let offline = "closed/HPE/results/HPE_PROLIANT_DL145_RTX_PRO_4500_PCIE_32GBx1_TRT_TRT/resnet/Offline";
        let expected = ["TEST01", "TEST04"]
            .map(|test| format!("test-performance {offline}/{test}/verify_performance.txt"));
        assert_eq!(errors, expected);
    }
}
