//! Checks the sources that LoadGen says it was built from: an unmodified MLCommons revision of the round's time.

use super::logged_run::LoggedRun;
use crate::check::{finding::Findings, rules};

const VERSION: &str = "loadgen_version";
const STATUS: &str = "loadgen_git_status_message";
const HISTORY: &str = "loadgen_git_log_message";
/// LoadGen's text for a value that is unknown because it was not built in a git checkout.
const UNKNOWN: &str = "NA";
const FIX: &str = "repeat the run with the round's LoadGen, unmodified";

/// Checks the records of LoadGen's sources.
pub(super) fn check(run: &LoggedRun<'_>, findings: &mut Findings) {
    version(run, findings);
    revision(run, findings);
    modified(run, findings);
}

/// Checks that the version is of the round's year: its major number, or the one before.
fn version(run: &LoggedRun<'_>, findings: &mut Findings) {
    let round = &run.case.context.round.name;
    let Some(found) = run.log.text(VERSION) else {
        return;
    };
    let Some(of_round) = major(round.trim_start_matches('v')) else {
        return;
    };
    match major(found) {
        Some(of_run) if of_run == of_round || of_run + 1 == of_round => {}
        Some(_) => {
            let text = format!("LoadGen {found} is not of the time of round {round}");
            run.error_with_fix(findings, rules::LOADGEN, VERSION, text, FIX);
        }
        None => {
            let text = format!("`{found}` is not a version of the MLCommons LoadGen");
            run.error_with_fix(findings, rules::LOADGEN, VERSION, text, FIX);
        }
    }
}

/// Returns the major number of a version such as `6.0.17 @ 9142ef0e74`.
fn major(version: &str) -> Option<u32> {
    let (major, minor) = version.split_once('.')?;
    minor.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    major.parse().ok()
}

/// Checks that the revision in the version is the newest commit of the logged history.
fn revision(run: &LoggedRun<'_>, findings: &mut Findings) {
    let revision = run.log.text(VERSION).and_then(|text| text.split_once(" @ "));
    let newest = run.log.text(HISTORY).and_then(|text| text.split(' ').next());
    if let (Some((_, revision)), Some(newest)) = (revision, newest)
        && ![revision, newest]
            .iter()
            .any(|text| text.is_empty() || *text == UNKNOWN)
        && !newest.starts_with(revision)
    {
        let text = format!("LoadGen is of revision {revision}, the newest commit in {HISTORY} is {newest}");
        run.error(findings, rules::LOADGEN, VERSION, text);
    }
}

/// Checks that no file of LoadGen was changed. LoadGen logs `git status` of its own directory.
fn modified(run: &LoggedRun<'_>, findings: &mut Findings) {
    let changed = run.log.text(STATUS).map(str::trim).unwrap_or_default();
    if !changed.is_empty() && changed != UNKNOWN {
        let first = changed.lines().next().unwrap_or_default();
        let text = format!("LoadGen was built from modified sources: {first}");
        run.error_with_fix(findings, rules::LOADGEN, STATUS, text, FIX);
    }
}
