//! Tests that published submissions are judged as by their official checkers: every row, to the letter.

#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use regatta_submission_check::{
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

/// The strict check's findings in a round's published trees.
struct StrictFindings {
    /// The rule and the path of each error.
    errors: Vec<String>,
    /// The number of warnings by rule.
    warnings: BTreeMap<String, u32>,
}

fn strict_findings(round_name: &str) -> Option<StrictFindings> {
    let directory = published_results(round_name)?;
    let root = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(directory.join("closed"), root.path().join("closed")).unwrap();
    let report = strict(&Tree::scan(root.path()).unwrap(), &round(round_name));
    let (mut errors, mut warnings) = (Vec::new(), BTreeMap::new());
    for finding in &report.findings {
        let rule = finding.rule.split(':').next().unwrap_or_default();
        match finding.severity {
            Severity::Error => errors.push(format!("{rule} {}", finding.path)),
            Severity::Warning => {
                println!("{rule} {} {}", finding.path, finding.message);
                *warnings.entry(rule.to_owned()).or_default() += 1;
            }
            Severity::Note => {}
        }
    }
    Some(StrictFindings { errors, warnings })
}

#[test]
fn published_trees_are_in_order_but_for_what_is_really_wrong() {
    let counts = |list: &[(&str, u32)]| {
        let list = list.iter().map(|(rule, count)| ((*rule).to_owned(), *count));
        list.collect::<BTreeMap<_, _>>()
    };
    // v2.1: measurements and tests of benchmarks that were not submitted, accuracy runs with a library of another size than the
    // performance runs', Krai's meter that nobody described, and 19 of NVIDIA's results with the mlperf.conf of v2.0, whose seeds their runs do not have.
    if let Some(found) = strict_findings("v2.1") {
        assert_eq!(found.errors, [""; 0]);
        assert_eq!(
            found.warnings,
            counts(&[
                ("agreement", 3),
                ("conf-files", 19),
                ("power", 6),
                ("power-session", 17),
                ("unmatched", 4)
            ])
        );
    }
    // v5.1: runs of one result made with different LoadGens; measurements and tests without results.
    if let Some(found) = strict_findings("v5.1") {
        assert_eq!(found.errors, [""; 0]);
        assert_eq!(found.warnings, counts(&[("agreement", 3), ("unmatched", 5)]));
    }
    // v6.0: the tests of one Offline result were verified against a run of 19114.1 samples/s; the submitted run has 19210.7.
    if let Some(found) = strict_findings("v6.0") {
        let offline = "closed/HPE/results/HPE_PROLIANT_DL145_RTX_PRO_4500_PCIE_32GBx1_TRT_TRT/resnet/Offline";
        let expected = ["TEST01", "TEST04"]
            .map(|test| format!("test-performance {offline}/{test}/verify_performance.txt"));
        assert_eq!(found.errors, expected);
        assert_eq!(found.warnings, counts(&[]));
    }
}
