//! The page of histories: the figures of each device over time with the change points that `regatta history` finds, and the changes at
//! each. Many histories are a table first; few are drawn.

mod series;

use std::sync::Arc;

use maud::{Markup, html};

use super::{
    comparison_form::{Suggestions, condition_fields, grammar, nothing_yet, refusal, selection_field},
    history_query::HistoryQuery,
    layout::{self, Page},
    outside_text::{NAME, SENTENCE, shown},
    recent_results::RecentResults,
};
use regatta_lab_store::{lab_error::LabError, workspace::Workspace};
use regatta_lab_views::{
    comparisons::{History, HistoryReport, MIN_RUNS},
    wording::excluded_runs,
};

static NEWEST: RecentResults<HistoryQuery, HistoryReport> = RecentResults::new();

/// The number of histories that are listed, and of those that are drawn.
const MAX_LISTED: usize = 200;
const MAX_DRAWN: usize = 4;

/// Histories, or the reason why there are none: the selection is unknown, or no run counts.
pub(super) type Histories = Arc<Result<HistoryReport, LabError>>;

/// Computes the histories of a query. It blocks.
pub(super) fn computed(query: &HistoryQuery, workspace: &Workspace) -> Histories {
    NEWEST.of_runs(query, workspace, |all| query.report(all))
}

/// Renders the page.
pub(super) fn page(query: &HistoryQuery, suggestions: &Suggestions, result: &Histories) -> Page {
    let content = html! {
        h1 { "History" }
        p .note {
            "The figures of each device over time. From " (MIN_RUNS) " runs on, changes of level are searched, and each lists what changed with it."
        }
        form .filter method="get" action="/history" role="search" {
            (selection_field("runs", "Runs", &query.runs))
            (condition_fields(&query.conditions, suggestions))
            button { "Show" }
        }
        (grammar())
        @match &**result {
            // Without a request, a lab that has no history yet is in order.
            Err(failure) if *query == HistoryQuery::default() => { (nothing_yet(failure)) }
            Err(failure) => { (refusal(failure)) }
            Ok(report) => { (report_of(query, report)) }
        }
    };
    layout::page("History", Some("/history"), None, &content)
}

fn report_of(query: &HistoryQuery, report: &HistoryReport) -> Markup {
    // Histories with changes come first: readers look for them.
    let mut histories: Vec<&History> = report.histories.iter().collect();
    histories.sort_by_key(|history| std::cmp::Reverse(history.changes.as_ref().map_or(0, Vec::len)));
    html! {
        @if histories.len() > 1 { (overview(query, &histories)) }
        @for history in histories.iter().take(MAX_DRAWN) { (series::render(history)) }
        @if histories.len() > MAX_DRAWN {
            p .note { "Only " (MAX_DRAWN) " histories are drawn. A link in the table shows another one." }
        }
        @if !report.excluded.is_empty() { p .note { "Left out: " (shown(&excluded_runs(&report.excluded), SENTENCE)) "." } }
        p .note {
            "The same with " code { (shown(&query.command(), SENTENCE)) } ". As JSON: "
            a href={ "/api/v1/histories?" (query.to_query()) } { "/api/v1/histories" } "."
        }
    }
}

/// Renders a table of all histories.
fn overview(query: &HistoryQuery, histories: &[&History]) -> Markup {
    let titles = ["Device", "Benchmark", "Runs", "Median", "Deviation", "Changes"];
    html! {
        table .histories role="table" aria-label="Histories" {
            thead role="rowgroup" { tr role="row" { @for title in titles { th role="columnheader" scope="col" { (title) } } } }
            tbody role="rowgroup" {
                @for history in histories.iter().take(MAX_LISTED) {
                    tr role="row" {
                        th role="rowheader" scope="row" data-title="Device" { @if let Some(link) = link(query, history) { a href=(link) { (shown(&history.device, NAME)) } } @else { (shown(&history.device, NAME)) } }
                        td role="cell" data-title="Benchmark" { (shown(&history.combination.short_text(), SENTENCE)) }
                        td .number role="cell" data-title="Runs" { (history.points.len()) }
                        td .number role="cell" data-title="Median" { (series::figure(history, history.median)) }
                        td .number role="cell" data-title="Deviation" { (series::deviation(history)) }
                        td .number role="cell" data-title="Changes" {
                            @match &history.changes {
                                Some(changes) => { (changes.len()) }
                                None => { "from " (MIN_RUNS) " runs on" }
                            }
                        }
                    }
                }
            }
        }
        @if histories.len() > MAX_LISTED { p .note { (histories.len() - MAX_LISTED) " more are not listed: select fewer runs." } }
    }
}

/// Returns the page of one device, benchmark and scenario. `None` for a device whose name cannot be a condition.
fn link(query: &HistoryQuery, history: &History) -> Option<String> {
    if history.device.contains('+') || shown(&history.device, NAME) != history.device {
        return None;
    }
    let mut narrowed = query.clone();
    let device = format!("device:{}", history.device);
    narrowed.runs = match query.runs.trim() {
        "" => device,
        // A list of runs and a device are two conditions.
        words if words.split('+').any(|word| word == device) => words.to_owned(),
        words => format!("{words}+{device}"),
    };
    narrowed
        .conditions
        .benchmark
        .clone_from(&history.combination.benchmark);
    narrowed.conditions.scenario = history.combination.scenario.parse().ok();
    Some(format!("/history?{}", narrowed.to_query()))
}
