//! Formats the report as one self-contained page for a review: results, latencies and findings.
//!
//! Names and messages come from untrusted trees and are escaped. The page has no script.

mod escape;
mod findings;
mod latencies;

use std::{collections::BTreeMap, fmt::Write as _};

use escape::escaped;

use super::{group, json, number};
use crate::check::{
    finding::{Finding, Severity},
    official::{Official, Verdict},
    strict::{Facts, ResultRow, StrictReport},
};

const STYLE: &str = include_str!("style.css");

/// Returns a strict report of a submission to `round` as a page.
#[must_use]
pub fn strict_html(report: &StrictReport, round: &str) -> String {
    let passes = report.passes();
    let title = if passes { "passes" } else { "does not pass" };
    let mut page = begun(
        &format!("Submission to {round}: {title}"),
        passes,
        &report.results,
        &report.findings,
        "Judged by the rules, recomputed from the logs where they allow it.",
    );
    results(&mut page, &report.results, &report.facts, &report.findings);
    latencies::table(&mut page, &report.facts);
    findings::groups(&mut page, &report.findings);
    page.push_str("</html>\n");
    page
}

/// Returns an official verdict on a submission to `round` as a page.
#[must_use]
pub fn official_html(official: &Official, round: &str) -> String {
    let verdict = match official.verdict {
        Verdict::Accept => "accepted",
        Verdict::Reject => "rejected",
        Verdict::Crash(_) => "the checker ends with a traceback",
    };
    let revision = &official.checker.revision;
    let (rows, found) = (json::rows(official), json::findings(official));
    let mut page = begun(
        &format!("Submission to {round} as checker {revision} judges it: {verdict}"),
        official.verdict == Verdict::Accept,
        &rows,
        &found,
        "These are the official checker's verdicts, including what it overlooks. The strict check reports more.",
    );
    results(&mut page, &rows, &[], &found);
    findings::groups(&mut page, &found);
    page.push_str("</html>\n");
    page
}

fn begun(title: &str, passes: bool, rows: &[ResultRow], found: &[Finding], how: &str) -> String {
    let title = escaped(title);
    let class = if passes { "verdict" } else { "verdict no" };
    let measured = rows.iter().filter(|row| !row.power);
    let accepted = measured.clone().filter(|row| row.accepted).count();
    let count = |severity| {
        let word = group::word(severity);
        let of_it = found.iter().filter(|finding| finding.severity == severity);
        match of_it.count() {
            0 => format!("no {word}s"),
            1 => format!("<span class={word}>1 {word}</span>"),
            count => format!("<span class={word}>{count} {word}s</span>"),
        }
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
         <header class=\"{class}\"><h1>{title}</h1>\n<p>{accepted} of {} results pass · \
         {} · {} · {}</p>\n\
         <p><small>{how}</small></p></header>\n",
        measured.count(),
        count(Severity::Error),
        count(Severity::Warning),
        count(Severity::Note),
    )
}

/// Writes one table per system. Power is in the row of its result.
fn results(page: &mut String, rows: &[ResultRow], facts: &[Facts], found: &[Finding]) {
    page.push_str("<h2>Results</h2>\n");
    let mut systems: BTreeMap<(&str, &str, &str), Vec<&ResultRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.power) {
        let system = (row.division.as_str(), row.submitter.as_str(), row.system.as_str());
        systems.entry(system).or_default().push(row);
    }
    if systems.is_empty() {
        page.push_str("<p>There are none.</p>\n");
    }
    for ((division, submitter, system), list) in systems {
        // Writing to a String cannot fail, here and below.
        let powers: Vec<_> = list.iter().map(|row| power(row, rows)).collect();
        let measured = powers.iter().any(Option::is_some);
        let _ = writeln!(
            page,
            "<h3>{} <small>{} · {}</small></h3>\n<div class=scroll><table>\n<tr><th>Benchmark<th>Scenario\
             <th class=n>Result<th>Unit{}<th>Accuracy<th class=n>Queries<th>LoadGen<th>Passes",
            escaped(system),
            escaped(submitter),
            escaped(division),
            if measured { "<th class=n>Power<th>" } else { "" }
        );
        for (row, power) in list.into_iter().zip(powers) {
            let power = measured.then(|| power.unwrap_or_else(|| "<td><td>".to_owned()));
            result(page, row, &power.unwrap_or_default(), (facts, found));
        }
        page.push_str("</table></div>\n");
    }
}

/// Returns the cells of a result's power, if it was measured.
fn power(row: &ResultRow, rows: &[ResultRow]) -> Option<String> {
    let power = rows
        .iter()
        .find(|other| other.power && same_scenario(other, row))?;
    let value = power
        .result
        .map_or_else(|| "none".to_owned(), number::significant);
    Some(format!("<td class=n>{value}<td>{}", escaped(&power.units)))
}

fn result(page: &mut String, row: &ResultRow, power: &str, (facts, found): (&[Facts], &[Finding])) {
    let facts = facts.iter().find(|facts| is_of(&facts.path, row));
    let accuracy = facts.into_iter().flat_map(|facts| &facts.accuracy);
    let accuracy: Vec<_> = accuracy
        .map(|metric| format!("{} {}", escaped(&metric.name), escaped(&short(&metric.value))))
        .collect();
    let queries = facts.and_then(|facts| facts.queries);
    let loadgen = facts
        .and_then(|facts| facts.loadgen.as_deref())
        .unwrap_or_default();
    let version = loadgen.split(' ').next().unwrap_or_default();
    let state = if row.accepted {
        let warnings = found
            .iter()
            .filter(|finding| finding.severity == Severity::Warning && is_of(&finding.path, row))
            .count();
        match warnings {
            0 => "<span class=yes>yes</span>".to_owned(),
            1 => "<span class=yes>yes</span>, <a href=\"#findings\" class=warning>1 warning</a>".to_owned(),
            count => {
                format!(
                    "<span class=yes>yes</span>, <a href=\"#findings\" class=warning>{count} warnings</a>"
                )
            }
        }
    } else {
        "<a href=\"#findings\" class=error><b>no</b></a>".to_owned()
    };
    let _ = writeln!(
        page,
        "<tr><td>{}<td>{}<td class=n>{}<td>{}{power}<td>{}<td class=n>{}<td><span title=\"{}\">{}</span><td>{state}",
        escaped(&row.model),
        escaped(&row.scenario),
        row.result
            .map_or_else(|| "none".to_owned(), |result| number::shown(result, false)),
        escaped(&row.units),
        accuracy.join("<br>"),
        queries.map_or_else(String::new, grouped),
        escaped(loadgen),
        escaped(version),
    );
}

fn same_scenario(one: &ResultRow, other: &ResultRow) -> bool {
    let key = |row: &ResultRow| {
        [
            row.division.clone(),
            row.submitter.clone(),
            row.system.clone(),
            row.model.clone(),
            row.scenario.clone(),
        ]
    };
    key(one) == key(other)
}

/// Returns whether a path belongs to a result's scenario, in any part of the submission.
fn is_of(path: &str, row: &ResultRow) -> bool {
    let mut parts = path.split('/');
    let mut next = || parts.next().unwrap_or_default();
    next() == row.division
        && next() == row.submitter
        && !next().is_empty()
        && next() == row.system
        && next() == row.model
        && next().eq_ignore_ascii_case(&row.scenario)
}

/// Shortens a metric's text to six significant digits.
fn short(text: &str) -> String {
    match text.parse() {
        Ok(value) if text.len() > 8 => number::significant(value),
        _ => text.to_owned(),
    }
}

/// Formats a count with thin spaces between groups of three digits.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}
