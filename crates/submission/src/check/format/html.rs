//! The report as one page that needs nothing else: results, latencies and findings, made to be read in a review.

use std::{collections::BTreeMap, fmt::Write as _};

use super::json;
use crate::check::{
    finding::{Finding, Severity},
    official::{Official, Verdict},
    strict::{Latency, Report, ResultRow},
};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:80rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{text-align:left;padding:.3rem .6rem;\
border-bottom:1px solid #ccc;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}\
code{font-size:.9em;overflow-wrap:anywhere}.error{color:#a40000}.warning{color:#8a5a00}.note{color:#555}";

/// A strict report of a submission to `round`.
#[must_use]
pub fn strict_html(report: &Report, round: &str) -> String {
    let verdict = if report.passes() {
        "in order"
    } else {
        "not in order"
    };
    let mut page = begun(&format!("Submission to {round}: {verdict}"));
    results(&mut page, &report.results);
    latencies(&mut page, &report.latencies);
    findings(&mut page, &report.findings);
    page.push_str("</html>\n");
    page
}

/// An official verdict on a submission to `round`.
#[must_use]
pub fn official_html(official: &Official, round: &str) -> String {
    let verdict = match official.verdict {
        Verdict::Accept => "accepted",
        Verdict::Reject => "rejected",
        Verdict::Crash(_) => "the checker ends with a traceback",
    };
    let revision = &official.checker.revision;
    let mut page = begun(&format!(
        "Submission to {round} as checker {revision} judges it: {verdict}"
    ));
    results(&mut page, &json::rows(official));
    findings(&mut page, &json::findings(official));
    page.push_str("</html>\n");
    page
}

fn begun(title: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n"
    )
}

fn results(page: &mut String, rows: &[ResultRow]) {
    page.push_str("<h2>Results</h2>\n<table>\n<tr><th>Division<th>Submitter<th>System<th>Benchmark<th>Scenario<th>Result<th>Units<th>Accepted\n");
    for row in rows {
        let result = row
            .result
            .map_or_else(|| "none".to_owned(), |result| result.to_string());
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            page,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td class=n>{result}<td>{}<td>{}",
            escaped(&row.division),
            escaped(&row.submitter),
            escaped(&row.system),
            escaped(&row.model),
            escaped(&row.scenario),
            escaped(&row.units),
            if row.accepted {
                "yes"
            } else {
                "<b class=error>no</b>"
            },
        );
    }
    page.push_str("</table>\n");
}

fn latencies(page: &mut String, latencies: &[Latency]) {
    let mut by_path: BTreeMap<&str, Vec<&Latency>> = BTreeMap::new();
    for latency in latencies {
        by_path.entry(&latency.path).or_default().push(latency);
    }
    if by_path.is_empty() {
        return;
    }
    page.push_str("<h2>Latencies in milliseconds</h2>\n<table>\n");
    for (path, list) in by_path {
        let _ = write!(page, "<tr><td><code>{}</code>", escaped(path));
        for latency in list {
            let milliseconds = latency.nanoseconds / 1e6;
            let _ = write!(
                page,
                "<td class=n>{}: {milliseconds:.3}",
                escaped(&latency.percentile)
            );
        }
        page.push('\n');
    }
    page.push_str("</table>\n");
}

fn findings(page: &mut String, findings: &[Finding]) {
    let _ = writeln!(page, "<h2>Findings: {}</h2>\n<table>", findings.len());
    for finding in findings {
        let (class, word) = match finding.severity {
            Severity::Error => ("error", "error"),
            Severity::Warning => ("warning", "warning"),
            Severity::Note => ("note", "note"),
        };
        let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
        let _ = writeln!(
            page,
            "<tr><td class={class}>{word}<td><code>{}{line}</code><br>{}<br><small>{}</small><td>{}",
            escaped(&finding.path),
            escaped(&finding.message),
            escaped(&finding.rule),
            escaped(&finding.mend),
        );
    }
    page.push_str("</table>\n");
}

/// Text that is safe within the page; names and messages come from strangers.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
