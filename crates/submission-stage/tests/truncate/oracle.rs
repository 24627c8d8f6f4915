//! Tests of truncation against the official tools' results for the same trees (`../shared/corpus/truncation`).

use regatta_catalogue::{known, procedures::Truncation};
use regatta_submission_stage::truncate::{
    Destination, Outcome, Problem, TruncationRequest, truncate, verify,
};
use regatta_test_support::{
    official_answers,
    tree::{copy, files},
};

fn rule(round: &str) -> Truncation {
    let rounds = known::rounds().unwrap();
    let round = rounds.into_iter().find(|known| known.name == round).unwrap();
    round.truncation.unwrap()
}

/// Round of ours, directory of expected files, case.
const CASES: [(&str, &str, &str); 6] = [
    ("v5.0", "expected-v5.1.1", "main"),
    ("v5.1", "expected-v5.1.1", "main"),
    ("v5.1", "expected-v5.1.1", "small"),
    ("v6.0", "expected-v6", "main"),
    ("v6.1", "expected-v6", "main"),
    ("v6.1", "expected-v6", "small"),
];

#[test]
fn a_new_tree_is_the_official_one_to_the_byte() {
    let Some(corpus) = official_answers("truncation") else {
        return;
    };
    for (round, expected, case) in CASES {
        let (rule, dir) = (rule(round), tempfile::tempdir().unwrap());
        let (input, output) = (corpus.join("input").join(case), dir.path().join("cut"));
        let request = TruncationRequest {
            input: &input,
            submitter: "ACME",
            destination: Destination::Output(output.clone()),
            skip_scenarios: &[],
            rule: &rule,
        };
        let report = truncate(&request).unwrap();
        assert!(report.cut() > 0, "{round} {case}");
        let (ours, theirs) = (files(&output), files(&corpus.join(expected).join(case)));
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
        for (path, bytes) in &theirs {
            assert!(
                ours[path] == *bytes,
                "{round} {case}: {path} differs from the official one"
            );
        }
        prove(&output, &input, &rule, &["hashed"]);
    }
}

#[test]
fn in_place_with_a_backup_gives_the_same_and_keeps_every_original() {
    let Some(corpus) = official_answers("truncation") else {
        return;
    };
    for (round, expected, case) in CASES {
        let (rule, dir) = (rule(round), tempfile::tempdir().unwrap());
        let original = corpus.join("input").join(case);
        let (input, backup) = (dir.path().join("tree"), dir.path().join("backup"));
        copy(&original, &input);
        let request = TruncationRequest {
            input: &input,
            submitter: "ACME",
            destination: Destination::Backup(backup.clone()),
            skip_scenarios: &[],
            rule: &rule,
        };
        let report = truncate(&request).unwrap();
        let cut = files(&input);
        assert!(cut == files(&corpus.join(expected).join(case)), "{round} {case}");
        for treated in &report.treated {
            if let Outcome::Cut { bytes, .. } = treated.outcome {
                let log = treated.directory.join("mlperf_log_accuracy.json");
                let kept = std::fs::read(backup.join(&log)).unwrap();
                assert_eq!(kept.len() as u64, bytes);
                assert!(kept == std::fs::read(original.join(&log)).unwrap());
            }
        }
        prove(&input, &backup, &rule, &["hashed"]);

        // Repeated: nothing changes, nothing is hashed twice.
        let again = truncate(&request).unwrap();
        assert_eq!(again.cut(), 0, "{round} {case}");
        assert!(cut == files(&input));
    }
}

#[test]
fn missing_logs_are_reported_and_the_rest_is_truncated() {
    let Some(corpus) = official_answers("truncation") else {
        return;
    };
    let (rule, dir) = (rule("v6.0"), tempfile::tempdir().unwrap());
    let request = TruncationRequest {
        input: &corpus.join("input/main"),
        submitter: "ACME",
        destination: Destination::Output(dir.path().join("cut")),
        skip_scenarios: &[],
        rule: &rule,
    };
    let report = truncate(&request).unwrap();
    let problems: Vec<_> = report
        .problems()
        .map(|(path, problem)| (path.to_str().unwrap(), problem.clone()))
        .collect();
    assert_eq!(
        problems,
        [
            (
                "closed/ACME/results/sys/m20000nonl/SingleStream/TEST01/accuracy",
                Problem::NoText
            ),
            (
                "closed/ACME/results/sys/mnoacc/SingleStream/accuracy",
                Problem::NoText
            ),
        ]
    );
}

/// Checks the proof of every truncated log, except those to which the corpus gave another log's hash.
fn prove(tree: &std::path::Path, originals: &std::path::Path, rule: &Truncation, forged: &[&str]) {
    let request = TruncationRequest {
        input: tree,
        submitter: "ACME",
        destination: Destination::Backup(originals.to_owned()),
        skip_scenarios: &[],
        rule,
    };
    let proofs = verify(&request, originals).unwrap();
    assert!(
        proofs
            .iter()
            .any(regatta_submission_stage::truncate::Proof::holds)
    );
    for proof in proofs {
        let directory = proof.directory.to_str().unwrap();
        let unmarked = directory.contains("mnoacc") || directory.contains("m20000nonl");
        let expected = !unmarked && !forged.iter().any(|part| directory.contains(part));
        if expected {
            assert!(proof.holds(), "{proof:?}");
        }
    }
}
