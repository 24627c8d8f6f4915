//! Tests of staged trees under the official checkers, where they are installed. `REGATTA_OFFICIAL_TOOLS` names a directory with a
//! checkout of mlcommons/inference per revision (`tests/oracles/inference/checkouts.sh` makes it), `REGATTA_PYTHON` a Python that
//! has PyYAML.

use std::{env, path::Path, process::Command};

use regatta_catalogue::round::{CheckerKind, Round};
use regatta_submission_check::{check, tree::Tree};
use regatta_submission_stage::{
    stage::{Answers, Kind},
    truncate::{self, Destination},
};
use regatta_test_requirements::official_tools;
use regatta_test_support::staging::StagingFixture;
use regatta_types::Division;

use crate::rehearsal;

fn cut(fixture: &StagingFixture, submitter: &str) {
    truncate::truncate(&truncate::TruncationRequest {
        input: &fixture.at("tree"),
        submitter,
        destination: Destination::Backup(fixture.at("originals")),
        skip_scenarios: &[],
        rule: fixture.round.truncation.as_ref().unwrap(),
    })
    .unwrap();
}

/// Returns whether the round's checker accepts a tree, and its output; `None` where it is not installed.
fn official(round: &Round, tree: &Path, csv: &Path) -> Option<(bool, String)> {
    let checker = round.submission.checkers.first().unwrap();
    let directory = official_tools(Path::new(&checker.revision).join("tools/submission"))?;
    let words: &[&str] = match checker.kind {
        CheckerKind::Monolith => &["submission_checker.py"],
        CheckerKind::Package => &["-m", "submission_checker.main"],
    };
    let output = Command::new(env::var_os("REGATTA_PYTHON").unwrap_or_else(|| "python3".into()))
        .current_dir(directory)
        .args(words)
        .args(["--version", &round.name, "--input"])
        .arg(tree)
        .arg("--csv")
        .arg(csv)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    Some((output.status.success(), messages))
}

/// A rehearsal is rejected for its measurements, not for its tree.
#[test]
fn the_rounds_own_checker_finds_nothing_wrong_with_a_rehearsals_tree() {
    for round in ["v5.1", "v6.1"] {
        let fixture = StagingFixture::new(round);
        let runs = rehearsal::runs(&fixture);
        let staged = fixture
            .stage(Division::Open, Kind::Rehearsal, &Answers::default(), &runs)
            .unwrap();
        cut(&fixture, &staged.submitter);
        let Some((accepted, output)) =
            official(&fixture.round, &fixture.at("tree"), &fixture.at("summary.csv"))
        else {
            return;
        };
        // The synthetic logs are a speech benchmark's of full length: only the number of samples is not resnet's. v5.1's checker
        // only logs that, and accepts.
        assert_eq!(accepted, round == "v5.1", "{output}");
        let errors = output.lines().filter(|line| line.contains(" ERROR]"));
        for error in errors {
            let about_runs = [
                "dataset size",
                "has issues",
                "Checks failed for",
                "NoResults",
                "SUMMARY",
            ];
            assert!(
                about_runs.iter().any(|part| error.contains(part)),
                "{round}: {error}"
            );
        }
        if round == "v6.1" {
            for part in ["system checks", "measurement checks"] {
                assert!(output.contains(&format!("All {part} checks passed")), "{output}");
            }
        }
    }
}

#[test]
fn the_rounds_own_checker_accepts_what_was_staged() {
    for round in ["v5.1", "v6.1"] {
        let fixture = StagingFixture::new(round);
        let (answers, runs) = (fixture.answers(|text| text), fixture.all_runs());
        fixture
            .stage(Division::Closed, Kind::Submission, &answers, &runs)
            .unwrap();
        cut(&fixture, "ACME");
        let csv = fixture.at("summary.csv");
        let Some((accepted, output)) = official(&fixture.round, &fixture.at("tree"), &csv) else {
            return;
        };
        assert!(
            accepted && output.contains("SUMMARY: submission looks OK"),
            "{round}: {output}"
        );
        let tree = Tree::scan(&fixture.at("tree")).unwrap();
        let ours = check::as_official(&tree, &fixture.round, None).unwrap();
        let rows = std::fs::read_to_string(csv).unwrap();
        assert_eq!(rows.lines().count(), 1 + ours.rows.len(), "{rows}");
    }
}
