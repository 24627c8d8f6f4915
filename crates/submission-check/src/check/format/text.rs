//! Formats reports for a terminal: results, then findings grouped by rule.

use std::fmt::Write as _;

use regatta_text::escape;

use super::{group, json, number};
use crate::check::{
    finding::{Finding, Severity},
    official::{Official, Verdict},
    strict::{ResultRow, StrictReport},
};

/// The number of places that are listed per message.
const SHOWN: usize = 5;

/// Returns a strict report as text.
#[must_use]
pub fn strict_text(report: &StrictReport) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    let width = report.results.iter().map(|row| name(row).len()).max();
    let mut system = String::new();
    for row in &report.results {
        let of = escape(&format!("{}/{}/{}", row.division, row.submitter, row.system)).into_owned();
        if of != system {
            let _ = writeln!(text, "{of}");
            system = of;
        }
        let mark = if row.accepted { "ok  " } else { "FAIL" };
        let result = row
            .result
            .map_or_else(|| "-".to_owned(), |result| number::shown(result, row.power));
        let width = width.unwrap_or_default();
        let _ = writeln!(
            text,
            "  {mark} {:width$}  {} {}",
            name(row),
            escape(&result),
            escape(&row.units)
        );
    }
    grouped(&mut text, &report.findings);
    let count = |severity| {
        report
            .findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let _ = writeln!(
        text,
        "\n{}: {} results, {} errors, {} warnings, {} notes",
        if report.passes() { "PASS" } else { "FAIL" },
        report.results.iter().filter(|row| !row.power).count(),
        count(Severity::Error),
        count(Severity::Warning),
        count(Severity::Note)
    );
    text
}

/// Returns the benchmark and scenario of a result.
fn name(row: &ResultRow) -> String {
    let power = if row.power { ", power" } else { "" };
    escape(&format!("{} {}{power}", row.model, row.scenario)).into_owned()
}

/// Returns an official verdict as text: its messages and the last lines of its log.
#[must_use]
pub fn official_text(official: &Official) -> String {
    let mut text = String::new();
    grouped(&mut text, &json::findings(official));
    for line in &official.summary {
        let _ = writeln!(text, "{}", escape(line));
    }
    if let Verdict::Crash(reason) = &official.verdict {
        let _ = writeln!(
            text,
            "the official checker ends with a traceback: {}",
            escape(reason)
        );
    }
    text
}

fn grouped(text: &mut String, findings: &[Finding]) {
    for group in group::by_rule(findings) {
        let (name, source) = group::name_and_source(group.rule);
        let _ = writeln!(text, "\n{}: {name} ({source})", group::word(group.severity));
        for (message, places) in &group.messages {
            let _ = writeln!(text, "  {}", escape(message));
            for finding in places.iter().take(SHOWN) {
                let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
                let times = group::times(finding);
                let _ = writeln!(text, "    {}{line}{times}", escape(&finding.path));
            }
            if places.len() > SHOWN {
                let _ = writeln!(text, "    and {} more", places.len() - SHOWN);
            }
        }
        let what = group::advice(group.severity);
        let _ = writeln!(text, "  {what}{}", escape(group.fix));
    }
}
