//! The page of comparisons: two selections of runs in a form, and the result of `regatta compare`. Each benchmark and scenario
//! has a forest plot and a table.

mod group;

use std::sync::Arc;

use maud::{Markup, html};

use super::{
    compare_query::CompareQuery,
    comparison_form::{Suggestions, check_box, condition_fields, grammar, refusal, selection_field},
    layout::{self, Page},
    outside_text::{SENTENCE, shown},
    recent_results::RecentResults,
};
use regatta_lab_store::{lab_error::LabError, workspace::Workspace};
use regatta_lab_views::{
    comparisons::{ComparisonReport, ComparisonVerdict},
    wording::comparison_notes,
};

static NEWEST: RecentResults<CompareQuery, ComparisonReport> = RecentResults::new();

/// A comparison, or the reason why there is none: a selection is unknown, or there is nothing to compare.
pub(super) type Compared = Arc<Result<ComparisonReport, LabError>>;

/// Compares the sides of a query. It blocks.
pub(super) fn compared(query: &CompareQuery, workspace: &Workspace) -> Compared {
    NEWEST.of_runs(query, workspace, |all| query.report(all))
}

/// Renders the page. `result` is `None` before anything is requested.
pub(super) fn page(query: &CompareQuery, suggestions: &Suggestions, result: Option<&Compared>) -> Page {
    let content = html! {
        h1 { "Compare" }
        p .note { "Is B better or worse than A? Regatta pairs their runs by time, and calls a difference only what noise does not explain." }
        (form(query, suggestions))
        (grammar())
        @match result.map(|result| &**result) {
            None => {}
            Some(Err(failure)) => { (refusal(failure)) }
            Some(Ok(report)) => { (report_of(query, report)) }
        }
    };
    layout::page("Compare", Some("/compare"), None, &content)
}

fn form(query: &CompareQuery, suggestions: &Suggestions) -> Markup {
    html! {
        form .filter method="get" action="/compare" role="search" {
            (selection_field("a", "A, the base", &query.a))
            (selection_field("b", "B", &query.b))
            (condition_fields(&query.conditions, suggestions))
            label { "Floor in % " input type="text" name="floor" value=(query.floor) size="4" maxlength="10" placeholder="1" inputmode="decimal"; }
            (check_box("different", "only better and worse", query.is_different_only))
            button { "Compare" }
        }
    }
}

fn report_of(query: &CompareQuery, report: &ComparisonReport) -> Markup {
    html! {
        p .headline {
            @for verdict in ComparisonVerdict::ALL {
                @let count = report.rows.iter().filter(|row| row.verdict == verdict).count();
                @if count > 0 { span class={ "badge v-" (group::class(verdict)) } { (count) " " (verdict.as_str()) } " " }
            }
        }
        ul .notes { @for note in comparison_notes(report) { li { (shown(&note, SENTENCE)) } } }
        @for rows in report.rows.chunk_by(|one, other| one.combination == other.combination) {
            (group::render(rows, query.is_different_only))
        }
        p .note {
            "The same with " code { (shown(&query.command(), SENTENCE)) } ". As JSON: "
            a href={ "/api/v1/comparison?" (query.to_query()) } { "/api/v1/comparison" } "."
        }
    }
}
