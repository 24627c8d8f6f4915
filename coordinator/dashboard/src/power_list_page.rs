//! The page of power sessions: every session, also those that failed, the newest first.

use maud::{Markup, html};
use regatta_types::documents::PowerVerdict;

use super::{
    layout::{self, Page},
    outside_text::{NAME, SENTENCE, shown},
};
use regatta_lab_store::PowerSessionRow;
use regatta_lab_views::wording;

/// The number of sessions that are listed.
const MAX: usize = 200;

/// Renders the page.
pub(super) fn page(rows: &[PowerSessionRow]) -> Page {
    let titles = ["Session", "Meter", "Run", "Began (UTC)", "Result", "Reason"];
    let content = html! {
        h1 { "Power sessions" }
        @if rows.is_empty() {
            p .note { "No session yet. " code { "regatta power run" } " makes one; " code { "regatta power simulate" } " rehearses one." }
        } @else {
            table role="table" aria-label="Power sessions, the newest first" {
                thead role="rowgroup" { tr role="row" { @for title in titles { th role="columnheader" scope="col" { (title) } } } }
                tbody role="rowgroup" { @for row in rows.iter().take(MAX) { (session(row)) } }
            }
        }
        @if rows.len() > MAX { p .note { (rows.len() - MAX) " older sessions are not listed." } }
        p .note { "The same with " code { "regatta power list" } ". As JSON: " a href="/api/v1/power-sessions" { "/api/v1/power-sessions" } "." }
    };
    layout::page("Power sessions", Some("/power"), None, &content)
}

fn session(row: &PowerSessionRow) -> Markup {
    let reason = row.reason().and_then(|reason| reason.lines().next());
    let reason = reason.unwrap_or_default();
    html! {
        tr role="row" {
            th role="rowheader" scope="row" data-title="Session" { a .name href={ "/power/" (row.id) } { code { (row.id) } } }
            td role="cell" data-title="Meter" { (shown(&row.meter, NAME)) }
            td role="cell" data-title="Run" { (shown(&row.benchmark, NAME)) " " (shown(&row.scenario, NAME)) }
            td role="cell" data-title="Began (UTC)" { (wording::time(&row.begun)) }
            td role="cell" data-title="Result" { (badge(row)) }
            td role="cell" data-title="Reason" { (shown(reason, SENTENCE)) }
        }
    }
}

/// Renders the result of a session in a word.
pub(super) fn badge(row: &PowerSessionRow) -> Markup {
    let (class, word) = match (row.verdict, &row.ended) {
        (Some(verdict), _) => {
            let class = match verdict {
                PowerVerdict::Pass => "good",
                PowerVerdict::Rehearsal | PowerVerdict::Informative => "warn",
                PowerVerdict::Fail => "bad",
            };
            (class, verdict.as_str())
        }
        (_, None) => ("busy", "not ended"),
        _ => ("bad", "failed"),
    };
    html! {
        span class={ "badge v-" (class) } { (word) }
        @if row.simulated == Some(true) && row.verdict != Some(PowerVerdict::Rehearsal) { " " span .badge .v-warn { "simulated PTDaemon" } }
    }
}
