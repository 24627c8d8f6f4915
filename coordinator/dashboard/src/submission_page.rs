//! The pages of submissions: the readiness of the lab's runs, with each missing thing and its remedy, and the strict check of every staged
//! tree. The judgement is the one of `regatta submission stage` and `check`.

mod folding;
mod progress;
mod readiness;
mod table;
mod tree_report;

use maud::{Markup, html};
use regatta_submission_check::check::{Finding, Severity};
use regatta_submission_stage::stage::StagingFinding;
use regatta_types::RunId;

use self::{folding::folded, table::table};
pub(super) use self::{readiness::Readiness, tree_report::TreeReport};
use super::{
    layout::{self, Page},
    outside_text::{NAME, SENTENCE, shown, shown_path},
    run_list_page::badge,
};
use regatta_lab_store::RunRow;
use regatta_lab_views::wording::{self, run_text};

/// The number of different findings that are listed.
const MAX_FINDINGS: usize = 300;

/// Renders the readiness of the lab.
pub(super) fn page(readiness: &Readiness) -> Page {
    let (questions, missing): (Vec<_>, Vec<_>) = readiness
        .findings
        .iter()
        .partition(|finding| finding.question.is_some());
    let content = html! {
        h1 { "Submission" }
        p .note {
            "What a closed tree of " (readiness.round) " would have now, out of " (readiness.runs) " finished runs. "
            code { "regatta submission stage --round " (readiness.round) " --division closed --answers ANSWERS.toml --output NEWTREE" }
            " makes it once nothing is missing."
        }
        h2 { "Progress" }
        (progress::section(&readiness.progress))
        h2 { "Results" }
        @if readiness.results.is_empty() { p { "No result is complete: see what is missing." } } @else { (results(readiness)) }
        h2 { "Missing or not allowed" }
        @if missing.is_empty() { p { "Nothing." } } @else { (staging_findings(&missing)) }
        @if !questions.is_empty() {
            h2 { "Answers that only the operator has" }
            (staging_findings(&questions))
        }
        h2 { "Staged trees" }
        @if readiness.trees.is_empty() { p { "None." } } @else { (trees(readiness)) }
        p .note { "Read at " (wording::time(&readiness.read)) ". A lab with many runs is read less often." }
    };
    layout::page("Submission", Some("/submission"), None, &content)
}

fn results(readiness: &Readiness) -> Markup {
    let run = |run: RunId, value: fn(&RunRow) -> Option<String>| {
        let row = readiness.rows.get(&run);
        html! {
            @if let Some(row) = row { (badge(row)) " " strong { (shown(&value(row).unwrap_or_default(), NAME)) } }
            span .detail { "run " a href={ "/run/" (run) } { (wording::short_id(run)) } }
        }
    };
    html! {
        (table("Results", &["System", "Benchmark", "Scenario", "Performance", "Accuracy", "Audits"], &html! {
            @for result in &readiness.results {
                tr role="row" {
                    th role="rowheader" scope="row" data-title="System" { (shown(&result.system, NAME)) }
                    td role="cell" data-title="Benchmark" { (shown(&result.model, NAME)) }
                    td role="cell" data-title="Scenario" { (result.scenario) }
                    td role="cell" data-title="Performance" { (run(result.performance, run_text::figure)) }
                    td role="cell" data-title="Accuracy" { (run(result.accuracy, run_text::accuracy)) }
                    td role="cell" data-title="Audits" {
                        @if result.audits.is_empty() { "none" }
                        ul .plain { @for (name, id) in &result.audits { li { (audit(name, *id, readiness)) } } }
                    }
                }
            }
        }))
    }
}

/// Renders an audit with the verdict of its record, which leads to its run.
fn audit(name: &str, run: RunId, readiness: &Readiness) -> Markup {
    let outcome = readiness.rows.get(&run).and_then(|row| row.outcome.as_ref());
    let (class, verdict) = match outcome.and_then(|outcome| outcome.audit.as_ref()) {
        Some(audit) if audit.passed => ("good", "PASS"),
        Some(_) => ("bad", "FAIL"),
        None => ("warn", "not verified"),
    };
    html! {
        a class={ "badge v-" (class) } href={ "/run/" (run) } { (shown(name, NAME)) " " (verdict) }
    }
}

fn staging_findings(findings: &[&StagingFinding]) -> Markup {
    let words = |finding: &&StagingFinding| {
        let (command, _) = folding::split_device(&finding.fix);
        (finding.what.clone(), command.to_owned())
    };
    let place = |finding: &&StagingFinding| {
        let (_, device) = folding::split_device(&finding.fix);
        (finding.place.clone(), device.map(str::to_owned))
    };
    let rows: Vec<_> = folded(findings, words, place)
        .into_iter()
        .map(|((what, command), places)| {
            let devices = places.iter().filter_map(|(_, device)| device.as_deref());
            let remedy = folding::join_devices(&command, devices);
            let places: Vec<String> = places.into_iter().map(|(place, _)| place).collect();
            (what, remedy, places)
        })
        .collect();
    html! {
        (table("Findings", &["Where", "What", "Remedy"], &html! {
            @for (what, remedy, places) in rows.iter().take(MAX_FINDINGS) {
                tr role="row" {
                    th role="rowheader" scope="row" data-title="Where" { (folding::places(places)) }
                    td role="cell" data-title="What" { (shown(what, SENTENCE)) }
                    td role="cell" data-title="Remedy" { (shown(remedy, SENTENCE)) }
                }
            }
        }))
        (more(rows.len()))
    }
}

fn trees(readiness: &Readiness) -> Markup {
    html! {
        (table("Staged trees", &["Tree", "Staged", "Runs"], &html! {
            @for tree in &readiness.trees {
                tr role="row" {
                    th role="rowheader" scope="row" data-title="Tree" {
                        a href={ "/submission/" (tree.key) } { (shown_path(&tree.path, SENTENCE)) }
                    }
                    td role="cell" data-title="Staged" { (wording::time(&tree.staged)) }
                    td .number role="cell" data-title="Runs" { (tree.runs) }
                }
            }
        }))
    }
}

/// Renders the strict check of a tree.
pub(super) fn tree_page(report: &TreeReport) -> Page {
    let path = shown(&report.path.to_string_lossy(), SENTENCE);
    let (class, verdict) = if report.report.passes() {
        ("good", "no error")
    } else {
        ("bad", "does not pass")
    };
    let content = html! {
        p .path { a href="/submission" { "Submission" } }
        h1 { "Check of " (path) }
        p .headline { span class={ "badge v-" (class) } { (verdict) } " by the rules of " (report.round) }
        h2 { "Results" }
        (table("Results", &["System", "Benchmark", "Scenario", "Result", "Check"], &html! {
            @for row in &report.report.results {
                tr role="row" {
                    th role="rowheader" scope="row" data-title="System" { (shown(&row.system, NAME)) }
                    td role="cell" data-title="Benchmark" { (shown(&row.model, NAME)) }
                    td role="cell" data-title="Scenario" { (shown(&row.scenario, NAME)) }
                    td role="cell" data-title="Result" {
                        @if let Some(result) = row.result { (regatta_text::significant(result, 4)) " " (shown(&row.units, NAME)) }
                    }
                    td role="cell" data-title="Check" {
                        @if row.accepted { span .badge .v-good { "no error" } } @else { span .badge .v-bad { "errors" } }
                    }
                }
            }
        }))
        h2 { "Findings" }
        @if report.report.findings.is_empty() { p { "None." } } @else { (findings(&report.report.findings)) }
        p .note { "Checked at " (wording::time(&report.checked)) ". The same with " code { "regatta submission check " (path) " --round " (report.round) } "." }
    };
    layout::page("Submission", Some("/submission"), None, &content)
}

fn findings(findings: &[Finding]) -> Markup {
    let severity = |finding: &Finding| match finding.severity {
        Severity::Error => ("bad", "error"),
        Severity::Warning => ("warn", "warning"),
        Severity::Note => ("plain", "note"),
    };
    let words = |finding: &Finding| (severity(finding), finding.message.clone(), finding.fix.clone());
    let place = |finding: &Finding| match finding.line {
        Some(line) => format!("{}, line {line}", finding.path),
        None => finding.path.clone(),
    };
    let rows = folded(findings, words, place);
    html! {
        (table("Findings", &["Severity", "Where", "What", "Remedy"], &html! {
            @for (((class, word), message, fix), places) in rows.iter().take(MAX_FINDINGS) {
                tr role="row" {
                    th role="rowheader" scope="row" data-title="Severity" { span class={ "badge v-" (class) } { (word) } }
                    td role="cell" data-title="Where" { (folding::places(places)) }
                    td role="cell" data-title="What" { (shown(message, SENTENCE)) }
                    td role="cell" data-title="Remedy" { (shown(fix, SENTENCE)) }
                }
            }
        }))
        (more(rows.len()))
    }
}

fn more(count: usize) -> Markup {
    html! {
        @if count > MAX_FINDINGS { p .note { (count - MAX_FINDINGS) " other findings are not listed." } }
    }
}
