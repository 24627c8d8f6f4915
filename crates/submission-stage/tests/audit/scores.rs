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
