//! Tests that scores are printed as by the official scripts.

use regatta_submission_stage::audit::compare_performance;

use regatta_test_support::round;

use crate::logs::Run;

#[test]
fn a_score_is_printed_to_its_last_digit() {
    let dir = tempfile::tempdir().unwrap();
    let (reference, test) = (dir.path().join("reference"), dir.path().join("test"));
    // Read to the nearest double but one, this becomes 98.13222144.
    Run::new("Offline", "98.13222144000001").put(&reference);
    Run::new("Offline", "97.80000000000001").put(&test);
    for name in ["v5.1", "v6.0", "v6.1"] {
        let rule = &round(name).audits["TEST01"];
        let verdict = compare_performance(rule, &reference, &test).unwrap();
        assert_eq!(
            verdict.text(),
            "Verifying performance.\nReference score = 98.13222144000001\nTest score = 97.80000000000001\nTEST PASS\n",
            "{name}"
        );
    }
}

#[test]
fn percentiles_are_read_in_the_spelling_of_every_loadgen() {
    let dir = tempfile::tempdir().unwrap();
    let (reference, test) = (dir.path().join("reference"), dir.path().join("test"));
    for name in [
        "v2.0", "v2.1", "v3.0", "v3.1", "v4.0", "v4.1", "v5.0", "v5.1", "v6.0", "v6.1",
    ] {
        for (audit, rule) in &round(name).audits {
            for (newer, scenario) in [
                (true, "SingleStream"),
                (false, "SingleStream"),
                (true, "MultiStream"),
                (false, "MultiStream"),
            ] {
                let run = |score: &str| Run {
                    newer,
                    ..Run::new(scenario, score)
                };
                run("5000000").put(&reference);
                run("5100000").put(&test);
                let scores = compare_performance(rule, &reference, &test).unwrap().scores;
                let scores = scores.expect("two comparable runs");
                let (read, audited) = match scores.unit.as_str() {
                    "queries/s" => (1e9 / scores.reference, 1e9 / scores.audited),
                    _ => (scores.reference, scores.audited),
                };
                let equal = |read: f64, written: f64| (read - written).abs() < 1.0;
                assert!(
                    equal(read, 5_000_000.0) && equal(audited, 5_100_000.0),
                    "{name} {audit} {scenario} {newer}: {scores:?}"
                );
            }
        }
    }
}
