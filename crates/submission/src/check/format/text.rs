//! Reports for a terminal: results, then findings grouped by rule, few words each.

use std::{collections::BTreeMap, fmt::Write as _};

use super::json;
use crate::check::{
    finding::{Finding, Severity},
    official::{Official, Verdict},
    strict::Report,
};

/// Places of one kind of finding that are shown.
const SHOWN: usize = 5;

/// A strict report.
#[must_use]
pub fn strict_text(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    for row in &report.results {
        let mark = if row.accepted { "ok  " } else { "FAIL" };
        let result = row
            .result
            .map_or_else(|| "-".to_owned(), |result| result.to_string());
        let _ = writeln!(
            text,
            "{mark} {}/{}/{}/{}/{} {result} {}",
            row.division, row.submitter, row.system, row.model, row.scenario, row.units
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
        "{}: {} results, {} errors, {} warnings, {} notes",
        if report.passes() { "PASS" } else { "FAIL" },
        report.results.len(),
        count(Severity::Error),
        count(Severity::Warning),
        count(Severity::Note)
    );
    text
}

/// An official verdict: its messages, and the last lines of its log.
#[must_use]
pub fn official_text(official: &Official) -> String {
    let mut text = String::new();
    grouped(&mut text, &json::findings(official));
    for line in &official.summary {
        let _ = writeln!(text, "{line}");
    }
    if let Verdict::Crash(reason) = &official.verdict {
        let _ = writeln!(text, "the official checker ends with a traceback: {reason}");
    }
    text
}

fn grouped(text: &mut String, findings: &[Finding]) {
    let mut groups: BTreeMap<(Severity, &str, &str), Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        let key = (finding.severity, finding.rule.as_str(), finding.mend.as_str());
        groups.entry(key).or_default().push(finding);
    }
    for ((severity, rule, mend), group) in groups {
        let word = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let _ = writeln!(text, "{word}: {rule}");
        for finding in group.iter().take(SHOWN) {
            let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
            let _ = writeln!(text, "  {}{line}: {}", finding.path, finding.message);
        }
        if group.len() > SHOWN {
            let _ = writeln!(text, "  and {} more", group.len() - SHOWN);
        }
        let _ = writeln!(text, "  mend: {mend}");
    }
}
