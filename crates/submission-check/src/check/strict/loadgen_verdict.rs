//! Checks LoadGen's report of a run as a whole: its verdict, errors, mode and seeds.

use regatta_mllog::read::Value;

use super::logged_run::{LoggedRun, Purpose};
use crate::check::{finding::Findings, rules};

/// Checks that LoadGen judged the run VALID.
pub(super) fn validity(run: &LoggedRun<'_>, findings: &mut Findings) {
    const KEY: &str = "result_validity";
    if run.log.text(KEY) != Some("VALID") {
        let text = format!("the run is {}, not VALID", run.found(KEY));
        run.error_with_fix(
            findings,
            rules::VALID,
            KEY,
            text,
            "repeat the run; the summary shows which conditions were not met",
        );
    }
    for key in ["result_min_duration_met", "result_min_queries_met"] {
        if run.log.flag(key) == Some(false) {
            let text = format!("{key} is false");
            run.error_with_fix(
                findings,
                rules::VALID,
                key,
                text,
                "repeat the run with the round's settings",
            );
        }
    }
}

/// Checks that the log has no record of an error, and that their count agrees.
pub(super) fn errors(run: &LoggedRun<'_>, findings: &mut Findings) {
    for error in run.log.errors.iter().take(5) {
        let place = (run.path, Some(error.line));
        let (text, fix) = match error.text.starts_with("error_") {
            true => (
                format!("LoadGen reports an error: {}", error.text),
                "remove the cause and repeat the run",
            ),
            false => (
                format!(
                    "marked as an error, which LoadGen never does with this record: {}",
                    error.text
                ),
                "put LoadGen's log of the run in its place",
            ),
        };
        findings.error(rules::LOADGEN_ERRORS, place, text, fix);
    }
    if run.log.error_count > 5 {
        let text = format!("{} records are marked as errors in all", run.log.error_count);
        let path = run.path;
        findings.error(
            rules::LOADGEN_ERRORS,
            path,
            text,
            "remove the cause and repeat the run",
        );
    }
    let stated = run.log.value("num_errors").and_then(Value::as_u64);
    if stated.is_some_and(|stated| stated != run.log.error_count) {
        let text = format!(
            "num_errors is {}, but the log has {}",
            run.found("num_errors"),
            run.log.error_count
        );
        run.error_with_fix(
            findings,
            rules::LOADGEN_ERRORS,
            "num_errors",
            text,
            "put LoadGen's log in its place",
        );
    }
}

/// Checks that LoadGen ran in the `expected` mode.
pub(super) fn mode(run: &LoggedRun<'_>, expected: &str, findings: &mut Findings) {
    const KEY: &str = "effective_test_mode";
    if run.log.text(KEY) != Some(expected) {
        let text = format!("the mode is {}, not {expected}", run.found(KEY));
        run.error_with_fix(
            findings,
            rules::MODE,
            KEY,
            text,
            "repeat the run in the right mode",
        );
    }
}

/// Checks that the three seeds are those of the round, or of its TEST05.
pub(super) fn seeds(run: &LoggedRun<'_>, purpose: Purpose<'_>, findings: &mut Findings) {
    let round = run.case.context.round;
    let seeds = match purpose {
        Purpose::Test("TEST05") => round.test05_seeds(),
        _ => round.seeds(),
    };
    let Some(seeds) = seeds else { return };
    for (name, expected) in [
        ("qsl", seeds.qsl),
        ("sample_index", seeds.sample_index),
        ("schedule", seeds.schedule),
    ] {
        let key = format!("effective_{name}_rng_seed");
        if run.log.value(&key).and_then(Value::as_u64) != Some(expected) {
            let text = format!("{key} is {}, {} has {expected}", run.found(&key), round.name);
            run.error_with_fix(
                findings,
                rules::SEEDS,
                &key,
                text,
                "repeat the run with the round's mlperf.conf",
            );
        }
    }
}
