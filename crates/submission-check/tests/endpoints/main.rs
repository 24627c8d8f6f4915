//! Tests of forged results of the endpoints harness. The unchanged tree has the figures of a published result; each forgery changes
//! one statement, which the official checker does not compare with the others.

#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]

mod forgeries;

use std::{fs, path::Path};

use forgeries::{FORGERIES, TEXT_FORGERIES};
use regatta_submission_check::{
    check::{Finding, Severity, StrictReport, Verdict, as_official, strict},
    tree::Tree,
};
use regatta_test_support::{round, synthetic_endpoints};
use serde_json::Value;
use tempfile::TempDir;

fn submission() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    synthetic_endpoints::write(root.path(), &round("v6.1"));
    root
}

fn report(root: &Path) -> StrictReport {
    strict(&Tree::scan(root).unwrap(), &round("v6.1"))
}

fn scenario(root: &TempDir) -> std::path::PathBuf {
    root.path().join(synthetic_endpoints::SCENARIO)
}

fn has(findings: &[Finding], rule: &str, severity: Severity, says: &str) -> bool {
    findings.iter().any(|finding| {
        finding.rule.starts_with(&format!("{rule}: "))
            && finding.severity == severity
            && finding.message.contains(says)
    })
}

/// Checks that a changed tree has the finding, and that it is not accepted if the finding is an error.
fn expect(root: &TempDir, name: &str, (rule, severity, says): (&str, Severity, &str)) {
    let report = report(root.path());
    assert!(
        has(&report.findings, rule, severity, says),
        "{name}: no {rule} `{says}` in {:#?}",
        report.findings
    );
    assert_eq!(report.passes(), severity != Severity::Error, "{name}");
}

#[test]
fn the_published_figures_have_no_findings() {
    let root = submission();
    let found = report(root.path());
    assert_eq!(found.findings, []);
    assert!(found.passes() && found.results.iter().all(|row| row.accepted));
    let result = found.results.first().and_then(|row| row.result).unwrap();
    assert!((result - 1_466.007_675_7).abs() < 1e-6, "{result}");
}

#[test]
fn no_forged_document_is_accepted() {
    for forgery in FORGERIES {
        let root = submission();
        let path = scenario(&root).join(forgery.file);
        let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let before = document.clone();
        (forgery.edit)(&mut document);
        assert_ne!(document, before, "{}", forgery.name);
        fs::write(&path, document.to_string()).unwrap();
        expect(&root, forgery.name, forgery.finding);
    }
}

#[test]
fn no_forged_text_is_accepted() {
    for forgery in TEXT_FORGERIES {
        let root = submission();
        let path = scenario(&root).join(forgery.file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(forgery.from), "{}", forgery.name);
        fs::write(&path, text.replacen(forgery.from, forgery.to, 1)).unwrap();
        expect(&root, forgery.name, forgery.finding);
    }
}

#[test]
fn the_official_checker_accepts_forgeries_that_the_strict_check_finds() {
    let root = submission();
    let path = scenario(&root).join("accuracy/accuracy_results.json");
    let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    document["accuracy_scores"][0]["score"] = 0.01.into();
    fs::write(&path, document.to_string()).unwrap();
    let official = as_official(&Tree::scan(root.path()).unwrap(), &round("v6.1"), None).unwrap();
    assert_eq!(official.verdict, Verdict::Accept);
    assert!(!report(root.path()).passes());
}

#[test]
fn the_layout_of_the_publishing_script_is_named_with_the_right_place() {
    let root = submission();
    let scenario = scenario(&root);
    fs::create_dir(scenario.join("performance/run_1")).unwrap();
    for (from, to) in [
        (
            "performance/result_summary.json",
            "performance/run_1/result_summary.json",
        ),
        ("config.yaml", "performance/run_1/config.yaml"),
    ] {
        fs::rename(scenario.join(from), scenario.join(to)).unwrap();
    }
    let says = (
        "endpoints",
        Severity::Error,
        "is not where the rules of the round have it",
    );
    expect(&root, "run_1", says);
}

#[test]
fn the_open_division_may_have_another_configuration() {
    let root = submission();
    let text = fs::read_to_string(scenario(&root).join("config.yaml")).unwrap();
    fs::write(
        scenario(&root).join("config.yaml"),
        text.replace("temperature: 0.0", "temperature: 0.7"),
    )
    .unwrap();
    fs::rename(root.path().join("closed"), root.path().join("open")).unwrap();
    regatta_test_support::edit::json_text(
        &root.path().join("open/Team/systems/board.json"),
        "division",
        "open",
    );
    let found = report(root.path()).findings;
    assert!(
        !has(&found, "endpoints-settings", Severity::Error, ""),
        "{found:#?}"
    );
}
