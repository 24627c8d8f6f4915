//! Tests against the official checkers, where they are installed. `REGATTA_OFFICIAL_TOOLS` names a directory with a checkout of
//! mlcommons/inference per revision (`tests/oracles/inference/checkouts.sh` makes it). Both judge correct and faulty submissions;
//! verdict and every row of the CSV must agree.
//!
//! `REGATTA_CHECKER_CASES` faulty submissions per checker (default 12), the same ones at each call; `REGATTA_CHECKER_ROUND`
//! takes one round alone.

#![expect(clippy::unwrap_used, reason = "a test may say what it expects")]

mod faults;
mod oracle;

use std::{env, path::Path};

use faults::TreeFault;
use oracle::{Judged, Oracle};
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use regatta_catalogue::{
    known,
    round::{Checker, Round},
};
use regatta_submission_check::{
    check::{Verdict, as_official, csv},
    tree::Tree,
};
use regatta_submission_stage::pack::DIVISIONS;
use regatta_test_support::{edit, synthetic_endpoints, synthetic_submission, tree};

/// Returns our judgement in the form of the oracle's.
fn ours(root: &Path, round: &Round, checker: &Checker, submitter: Option<&str>) -> (Judged, String) {
    let mut tree = Tree::scan(root).unwrap();
    if let Some(submitter) = submitter {
        tree = tree.only_submitter(submitter, &DIVISIONS);
    }
    let official = as_official(&tree, round, Some(&checker.revision)).unwrap();
    let text = csv(checker, &round.name, &official.rows);
    let rows = match official.verdict {
        // After a traceback there is an incomplete CSV, which is not compared.
        Verdict::Crash(_) => oracle::rows("", &round.name),
        _ => oracle::rows(&text, &round.name),
    };
    let verdict = match &official.verdict {
        Verdict::Accept => "accept",
        Verdict::Reject => "reject",
        Verdict::Crash(_) => "crash",
    };
    (
        Judged { verdict, rows },
        format!("{:?} {:#?}", official.verdict, official.notes),
    )
}

fn compare(oracle: &Oracle, root: &Path, what: &str, both: (&Round, &Checker)) -> Result<(), String> {
    compare_submitter(oracle, root, what, both, None)
}

fn compare_submitter(
    oracle: &Oracle,
    root: &Path,
    what: &str,
    (round, checker): (&Round, &Checker),
    submitter: Option<&str>,
) -> Result<(), String> {
    let (theirs, log) = oracle.judge(root, &round.name, submitter);
    let (ours, notes) = ours(root, round, checker, submitter);
    if ours == theirs {
        return Ok(());
    }
    let log: Vec<_> = log.lines().filter(|line| !line.contains(" INFO]")).collect();
    Err(format!(
        "{} by {}: {what}\nours {ours:#?}\ntheirs {theirs:#?}\nour notes {notes}\ntheir log\n{}",
        round.name,
        checker.revision,
        log.join("\n")
    ))
}

/// Writes a submission.
type Writer = Box<dyn Fn(&Path, &Round)>;

/// Returns the correct submissions: every benchmark in each of its categories.
fn originals(round: &Round) -> Vec<(String, Writer)> {
    let mut list: Vec<(String, Writer)> =
        vec![("one benchmark".to_owned(), Box::new(synthetic_submission::write))];
    for (name, rules) in &round.submission.benchmarks {
        for kind in ["edge", "datacenter", "edge,datacenter"] {
            if rules.scenarios(kind).is_some() {
                let name = name.clone();
                list.push((
                    format!("{name}, {kind}"),
                    Box::new(move |root, round| synthetic_submission::category(root, round, &name, kind)),
                ));
            }
        }
    }
    if round.submission.endpoints.is_some() {
        list.push((
            "the endpoints harness".to_owned(),
            Box::new(synthetic_endpoints::write),
        ));
    }
    list
}

#[test]
fn both_say_the_same() {
    let cases = env::var("REGATTA_CHECKER_CASES").map_or(12, |text| text.parse().unwrap());
    let mut wrong = Vec::new();
    let mut judged = 0;
    let only = env::var("REGATTA_CHECKER_ROUND").ok();
    let rounds = known::rounds().unwrap().into_iter();
    for round in rounds.filter(|round| only.as_ref().is_none_or(|only| *only == round.name)) {
        for checker in &round.submission.checkers {
            let Some(oracle) = Oracle::find(&checker.revision) else {
                continue;
            };
            let both = (&round, checker);
            // The same faults at each call.
            let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
            let mut runner = TestRunner::new_with_rng(Config::default(), random);
            // Correct by the tables of this checker, which may differ from the round's.
            let mut known = round.clone();
            known.submission = round.submission.as_known_to(checker).unwrap().into_owned();
            let originals = originals(&known);
            for (name, write) in &originals {
                let root = tempfile::tempdir().unwrap();
                write(root.path(), &known);
                wrong.extend(compare(&oracle, root.path(), &format!("{name}, in order"), both).err());
                judged += 1;
            }
            for case in 0..cases {
                // Far apart, so that few cases cover many benchmarks.
                let (name, write) = &originals[case * 7 % originals.len()];
                let faults: Vec<TreeFault> = faults::some().new_tree(&mut runner).unwrap().current();
                let root = tempfile::tempdir().unwrap();
                write(root.path(), &known);
                let done: Vec<_> = faults
                    .iter()
                    .filter_map(|fault| fault.apply(root.path()))
                    .collect();
                let what = format!("{name}, case {case}: {done:#?}");
                wrong.extend(compare(&oracle, root.path(), &what, both).err());
                judged += 1;
            }
            println!(
                "{} by {}: {judged} judged, {} differ",
                round.name,
                checker.revision,
                wrong.len()
            );
        }
    }
    println!("{judged} submissions judged by both");
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Writes a tree of two submitters: `Team` in order, and `Other` with a wrong description and a file that no checker accepts.
fn two_submitters(root: &Path, round: &Round) {
    synthetic_submission::write(root, round);
    let other = root.join("closed/Other");
    tree::copy(&root.join("closed/Team"), &other);
    edit::json_text(&other.join("systems/board.json"), "submitter", "Other");
    edit::json_text(&other.join("systems/board.json"), "status", "sold");
    tree::put(&other.join("with space.txt"), "x");
}

#[test]
fn one_submitter_is_judged_as_by_the_official_option() {
    let mut wrong = Vec::new();
    for round in known::rounds().unwrap() {
        for checker in &round.submission.checkers {
            let Some(oracle) = Oracle::find(&checker.revision) else {
                continue;
            };
            let mut known = round.clone();
            known.submission = round.submission.as_known_to(checker).unwrap().into_owned();
            let root = tempfile::tempdir().unwrap();
            two_submitters(root.path(), &known);
            for submitter in ["Team", "Other", "Nobody"] {
                let both = (&round, checker);
                let compared = compare_submitter(&oracle, root.path(), submitter, both, Some(submitter));
                wrong.extend(compared.err());
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n\n"));
}
