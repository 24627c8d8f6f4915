//! Formats the JSON of `submission check`: verdict, results and findings.

use serde::Serialize;

use crate::check::{
    finding::{Finding, Severity},
    official::{Official, Verdict},
    strict::{ResultRow, StrictReport},
};

#[derive(Serialize)]
struct StrictDocument<'a> {
    verdict: &'static str,
    results: &'a [ResultRow],
    findings: &'a [Finding],
}

/// Returns a strict report as JSON.
///
/// # Errors
/// Does not fail in practice, because all values are texts and numbers.
pub fn strict_json(report: &StrictReport) -> serde_json::Result<String> {
    document(report.passes(), &report.results, &report.findings)
}

/// Returns an official verdict as JSON, with its rows as results and its messages as findings.
///
/// # Errors
/// Returns the errors of [`strict_json`].
pub fn official_json(official: &Official) -> serde_json::Result<String> {
    document(
        official.verdict == Verdict::Accept,
        &rows(official),
        &findings(official),
    )
}

fn document(passes: bool, results: &[ResultRow], findings: &[Finding]) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&StrictDocument {
        verdict: if passes { "pass" } else { "fail" },
        results,
        findings,
    })
}

/// Converts the rows of an official checker to results.
pub(super) fn rows(official: &Official) -> Vec<ResultRow> {
    official.rows.iter().map(result).collect()
}

fn result(row: &crate::check::official::Row) -> ResultRow {
    ResultRow {
        division: row.division.clone(),
        submitter: row.submitter.clone(),
        system: row.system.clone(),
        model: row.model.clone(),
        scenario: row.scenario.clone(),
        result: Some(row.value),
        units: row.units.clone(),
        power: row.power,
        accepted: true,
    }
}

/// Converts the messages of an official checker to findings, including its traceback if it crashes.
pub(super) fn findings(official: &Official) -> Vec<Finding> {
    let rule = format!("as-official: checker {}", official.checker.revision);
    let finding = |severity, path: &str, message: String, fix: &str| Finding {
        severity,
        rule: rule.clone(),
        path: path.to_owned(),
        line: None,
        message,
        fix: fix.to_owned(),
        count: 1,
    };
    let mut findings: Vec<_> = official
        .notes
        .iter()
        .map(|note| {
            let severity = if note.fatal {
                Severity::Error
            } else {
                Severity::Warning
            };
            finding(severity, &note.path, note.text.clone(), "see the strict check")
        })
        .collect();
    if let Verdict::Crash(reason) = &official.verdict {
        let text = format!("the official checker ends with a traceback: {reason}");
        findings.push(finding(
            Severity::Error,
            ".",
            text,
            "fix this first: nothing after it is judged",
        ));
    }
    findings
}
