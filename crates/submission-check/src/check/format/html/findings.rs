//! Formats the findings on the page: one group per rule and fix, errors first and expanded.

use std::fmt::Write as _;

use super::escaped;
use crate::check::{
    finding::{Finding, Severity},
    format::group,
};

/// Writes all findings.
pub(super) fn groups(page: &mut String, findings: &[Finding]) {
    page.push_str("<h2 id=findings>Findings</h2>\n");
    if findings.is_empty() {
        page.push_str("<p>There are none.</p>\n");
    }
    for group in group::by_rule(findings) {
        let open = if group.severity == Severity::Error {
            " open"
        } else {
            ""
        };
        let word = group::word(group.severity);
        let (name, source) = group::name_and_source(group.rule);
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            page,
            "<details{open}><summary><b class={word}>{word}: {}</b> <small>{} · {}</small></summary>\n<ul>",
            escaped(name),
            escaped(source),
            group.places(),
        );
        for (message, places) in &group.messages {
            let _ = writeln!(page, "<li>{}", escaped(message));
            for finding in places {
                let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
                let _ = writeln!(
                    page,
                    "<br><span class=path>{}{line}</span>{}",
                    escaped(&finding.path),
                    group::times(finding)
                );
            }
        }
        let advice = group::advice(group.severity);
        let _ = writeln!(
            page,
            "</ul><p class=hint><small>{advice}</small>{}</p></details>",
            escaped(group.fix)
        );
    }
}
