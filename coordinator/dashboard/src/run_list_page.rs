//! The page of runs: the newest first, a page at a time. The rows are pieces, so that a change replaces only what changed.

use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use regatta_types::{RunId, documents::RunPhase};

use super::{
    layout::{self, Page},
    outside_text::shown,
    pieces::Pieces,
    run_list_query::{RunListQuery, verdicts},
};
use regatta_lab_store::{self as store, RunRow, RunSelection, Store};
use regatta_lab_views::wording::{self, run_text};

/// The number of runs of a page.
const PAGE: usize = 50;
/// The number of runs that are read for a page. A rare verdict is found on later pages.
const MAX_READ: usize = 500;
/// Limits of texts in characters.
const WORD: usize = 40;
const NOTE: usize = 90;

/// A part of the runs.
pub(super) struct RunList {
    /// The selected runs, newest first.
    pub(super) rows: Vec<RunRow>,
    /// The last run that was read, if there may be older ones.
    pub(super) last_read: Option<RunId>,
    /// The time when it was read.
    read: Timestamp,
}

impl RunList {
    /// Reads the runs of a query's page.
    pub(super) fn read(query: &RunListQuery, store: &Store) -> store::Result<Self> {
        let devices = if query.device.is_empty() {
            None
        } else {
            let known = store.devices().names()?.into_iter();
            let found = known.filter(|(id, name)| {
                name.to_lowercase().contains(&query.device) || id.as_str().starts_with(&query.device)
            });
            Some(found.map(|(id, _)| id).collect())
        };
        let mut selection = RunSelection {
            before: query.before,
            devices,
            benchmark: Some(query.benchmark.clone()).filter(|name| !name.is_empty()),
        };
        let (mut rows, mut read, mut last_read) = (Vec::new(), 0, None);
        while rows.len() < PAGE && read < MAX_READ {
            let more = store.runs().page(&selection, PAGE)?;
            let is_last = more.len() < PAGE;
            read += more.len();
            for row in more {
                last_read = Some(row.id);
                if query.run_verdict().is_none_or(|verdict| verdict.is_of(&row)) {
                    rows.push(row);
                }
                if rows.len() == PAGE {
                    break;
                }
            }
            if is_last && rows.len() < PAGE {
                last_read = None;
                break;
            }
            selection.before = last_read;
        }
        if let Some(last) = last_read {
            selection.before = Some(last);
            last_read = last_read.filter(|_| {
                store
                    .runs()
                    .page(&selection, 1)
                    .is_ok_and(|rows| !rows.is_empty())
            });
        }
        Ok(Self {
            rows,
            last_read,
            read: Timestamp::now(),
        })
    }
}

/// Renders the parts of the page that change.
pub(super) fn pieces(query: &RunListQuery, list: &RunList) -> Pieces {
    let mut pieces = Pieces::default();
    pieces.add("older", older(query, list));
    for row in &list.rows {
        let id = format!("r-{}", row.id);
        let html = run_row(&id, row, list.read);
        pieces.add_row(id, html);
    }
    pieces
}

/// Renders the page around the pieces. `benchmarks` are those that have runs.
pub(super) fn page(query: &RunListQuery, pieces: &Pieces, benchmarks: &[String]) -> Page {
    let live = format!("/live/runs?{}", query.to_query());
    let content = html! {
        h1 { "Runs" }
        (filter(query, benchmarks))
        table .runs role="table" aria-label="Runs, the newest first" {
            thead role="rowgroup" {
                tr role="row" {
                    @for title in ["Run", "Device", "Engine", "Started (UTC)", "Took", "Verdict", "Figure", "Accuracy", "Note"] {
                        th role="columnheader" scope="col" { (title) }
                    }
                }
            }
            tbody data-rows role="rowgroup" {
                @for row in pieces.rows() { (PreEscaped(row)) }
            }
        }
        (PreEscaped(pieces.html("older")))
        p .note #live role="status" { "Reload the page for newer values." }
    };
    layout::page("Runs", Some("/runs"), Some(&live), &content)
}

fn older(query: &RunListQuery, list: &RunList) -> Markup {
    html! {
        p #older .note {
            @if list.rows.is_empty() && *query == RunListQuery::default() {
                "No run yet. Request one with " code { "regatta run" } "."
            } @else if list.rows.is_empty() && list.last_read.is_none() {
                "No run matches. " a href="/runs" { "Show all" }
            } @else {
                @if query.before.is_some() {
                    a href=(link(&RunListQuery { before: None, ..query.clone() })) { "Newest" } " "
                }
                @if let Some(last) = list.last_read {
                    a href=(link(&query.before(last))) { "Older" }
                } @else {
                    "There are no older runs."
                }
            }
        }
    }
}

fn link(query: &RunListQuery) -> String {
    match query.to_query() {
        text if text.is_empty() => "/runs".to_owned(),
        text => format!("/runs?{text}"),
    }
}

fn run_row(id: &str, row: &RunRow, now: Timestamp) -> Markup {
    let device = run_text::device(row);
    let note = match &row.state.reason {
        Some(reason) if !run_text::has_result(row) => reason.clone(),
        _ => run_text::notes(row),
    };
    let waits = run_text::waits_for(row);
    let settings = run_text::settings_and_state(row);
    html! {
        tr id=(id) role="row" {
            th role="rowheader" scope="row" data-title="Run" {
                a .name href={ "/run/" (row.id) } {
                    (shown(&row.benchmark, WORD)) " " (row.scenario) " " (shown(&run_text::mode(row), WORD))
                }
                span .detail { code { (wording::short_id(row.id)) } }
            }
            td role="cell" data-title="Device" { (shown(&device, WORD)) }
            td role="cell" data-title="Engine" {
                (row.draft.spec.engine.kind)
                @if !settings.is_empty() { span .detail { (shown(&settings, NOTE)) } }
            }
            td role="cell" data-title="Started (UTC)" { (run_text::started(row, now).unwrap_or_default()) }
            td .number role="cell" data-title="Took" { (run_text::took(row).unwrap_or_default()) }
            td role="cell" data-title="Verdict" {
                (badge(row))
                @if let Some(waits) = waits { span .detail { (shown(&waits, NOTE)) } }
            }
            td .number role="cell" data-title="Figure" { (shown(&run_text::figure(row).unwrap_or_default(), WORD)) }
            td .number role="cell" data-title="Accuracy" { (shown(&run_text::accuracy(row).unwrap_or_default(), WORD)) }
            td role="cell" data-title="Note" { (shown(&note, NOTE)) }
        }
    }
}

/// Renders the verdict or state of a run.
pub(super) fn badge(row: &RunRow) -> Markup {
    let state = run_text::state(row);
    let class = match (state, row.shown_phase()) {
        ("VALID" | "TEST PASS", _) => "good",
        ("INVALID" | "TEST FAIL", _) | (_, RunPhase::Failed) => "bad",
        (_, RunPhase::Aborted) => "warn",
        (_, RunPhase::Done) => "plain",
        _ => "busy",
    };
    html! { span class={ "badge v-" (class) } { (state) } }
}

fn filter(query: &RunListQuery, benchmarks: &[String]) -> Markup {
    let choice = |name: &'static str, title: &str, words: &[&str], chosen: &str| {
        html! {
            label { (title) " "
                select name=(name) {
                    option value="" { "any" }
                    @for word in words { option value=(word) selected[*word == chosen] { (shown(word, WORD)) } }
                }
            }
        }
    };
    let benchmarks: Vec<&str> = benchmarks.iter().map(String::as_str).collect();
    html! {
        form .filter method="get" action="/runs" role="search" {
            label { "Device " input type="search" name="device" value=(query.device) maxlength="100"; }
            (choice("benchmark", "Benchmark", &benchmarks, &query.benchmark))
            (choice("verdict", "Verdict", &verdicts(), query.verdict.unwrap_or_default()))
            button { "Show" }
        }
    }
}
