//! Tests of submissions of datacenter systems: correct ones are accepted in both modes, too slow ones are not.

use std::fs;

use regatta_catalogue::round::SubmittedScenario;
use regatta_submission_check::{
    check::{Verdict, as_official, strict},
    tree::Tree,
};
use regatta_test_support::{round, synthetic_submission};

#[test]
fn valid_datacenter_results_are_accepted() {
    let mut judged = 0;
    // One round of each kind of checker and layout; the test of the official checkers has all.
    for round in ["v2.1", "v5.1", "v6.1"].map(round) {
        for (name, rules) in &round.submission.benchmarks {
            if rules.scenarios("datacenter").is_none() {
                continue;
            }
            let what = format!("{} {name}", round.name);
            let root = tempfile::tempdir().unwrap();
            synthetic_submission::category(root.path(), &round, name, "datacenter");
            let tree = Tree::scan(root.path()).unwrap();
            let report = strict(&tree, &round);
            assert!(report.passes(), "{what}: {:#?}", report.findings);
            assert!(report.results.iter().all(|row| row.accepted), "{what}");
            let official = as_official(&tree, &round, None).unwrap();
            assert_eq!(official.verdict, Verdict::Accept, "{what}: {:#?}", official.notes);
            assert_eq!(official.rows.len(), report.results.len(), "{what}");
            judged += 1;
        }
    }
    assert!(judged > 30, "{judged}");
}

#[test]
fn interactive_has_bounds_of_its_own() {
    let round = round("v6.0");
    let root = tempfile::tempdir().unwrap();
    synthetic_submission::category(root.path(), &round, "llama3.1-8b", "datacenter");
    let scenario = "closed/Team/results/board/llama3.1-8b/Interactive";
    let log = root
        .path()
        .join(scenario)
        .join("performance/run_1/mlperf_log_detail.txt");
    // Within Server's bound, above Interactive's.
    let text = fs::read_to_string(&log).unwrap().replace("14000000", "60000000");
    fs::write(&log, text).unwrap();
    let tree = Tree::scan(root.path()).unwrap();
    let report = strict(&tree, &round);
    let [finding] = report.findings.as_slice() else {
        panic!("{:#?}", report.findings)
    };
    assert!(finding.rule.starts_with("latency"), "{}", finding.rule);
    assert!(finding.path.contains(scenario), "{}", finding.path);
    // The official checker of v6.0 uses LoadGen's scenario, which is Server.
    let official = as_official(&tree, &round, None).unwrap();
    assert_eq!(official.verdict, Verdict::Accept);
    let interactive = SubmittedScenario::Interactive.as_str();
    assert!(official.rows.iter().any(|row| row.scenario == interactive));
}

#[test]
fn one_of_server_and_interactive_is_required() {
    for name in ["v5.1", "v6.1"] {
        let round = round(name);
        let root = tempfile::tempdir().unwrap();
        synthetic_submission::category(root.path(), &round, "llama3.1-8b", "datacenter");
        let model = root.path().join("closed/Team/results/board/llama3.1-8b");
        fs::remove_dir_all(model.join("Server")).unwrap();
        let tree = Tree::scan(root.path()).unwrap();
        assert_eq!(
            as_official(&tree, &round, None).unwrap().verdict,
            Verdict::Accept,
            "{name}"
        );
        fs::remove_dir_all(model.join("Interactive")).unwrap();
        let tree = Tree::scan(root.path()).unwrap();
        assert_eq!(
            as_official(&tree, &round, None).unwrap().verdict,
            Verdict::Reject,
            "{name}"
        );
        assert!(!strict(&tree, &round).passes(), "{name}");
    }
}
