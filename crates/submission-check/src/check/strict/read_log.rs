//! Reads the detail logs of a scenario and reports lines that cannot be parsed.

use super::case::Case;
use crate::{
    check::{
        finding::{Findings, Severity},
        rules,
        run_log::{RunLog, Unreadable},
    },
    tree::Tree,
};

/// Reads the detail log in `directory`. Lines that cannot be parsed become findings; the other lines are still checked.
pub(super) fn read_log(case: &Case<'_>, directory: &str, findings: &mut Findings) -> Option<RunLog> {
    judged_log(RunLog::read, case, directory, findings)
}

/// Reads and hashes the detail log in `directory`, because a power session names its hash.
pub(super) fn read_hashed_log(case: &Case<'_>, directory: &str, findings: &mut Findings) -> Option<RunLog> {
    judged_log(RunLog::read_hashed, case, directory, findings)
}

fn judged_log(
    read: fn(&Tree, &str) -> Result<RunLog, Unreadable>,
    case: &Case<'_>,
    directory: &str,
    findings: &mut Findings,
) -> Option<RunLog> {
    let path = format!("{directory}/mlperf_log_detail.txt");
    let log = match read(case.context.tree, &path) {
        Ok(log) => log,
        Err(error) => {
            let text = case.context.unread(&path, &error.0);
            findings.error(rules::FILE_SET, &path, text, "add LoadGen's log of this run");
            return None;
        }
    };
    log.line_bytes.report(&path, findings);
    for bad in &log.unreadable {
        let text = format!("the line cannot be parsed: {}", bad.text);
        let fix = "put LoadGen's log in its place; the official checker stops here";
        findings.error(rules::LOG, (path.as_str(), Some(bad.line)), text, fix);
    }
    if log.has_no_records() {
        findings.error(
            rules::LOG,
            &path,
            "contains no record",
            "put LoadGen's log in its place",
        );
        return None;
    }
    if !log.begins_with_record && log.unreadable.is_empty() {
        let fix = "remove everything before LoadGen's records; the official checker stops here";
        findings.add(
            Severity::Warning,
            rules::LOG,
            (path.as_str(), Some(1)),
            "the first line is not a record",
            fix,
        );
    }
    Some(log)
}
