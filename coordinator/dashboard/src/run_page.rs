//! The page of a run: its verdict with the reasons, latencies, sensors over time, the state of its device, evidence, files, and the command
//! that repeats it. Every text about the run is the one that `regatta runs show` prints.

mod charts;
mod facts;
mod files;
mod latency_chart;
mod telemetry_charts;

use maud::{Markup, PreEscaped, html};

pub(super) use self::{charts::RunCharts, files::run_file};
use super::{
    layout::{self, Page},
    outside_text::{NAME, SENTENCE, shown},
    pieces::Pieces,
    run_list_page::badge,
};
use regatta_lab_runs::{marker_reasons, repeat_command};
use regatta_lab_store::{RunRow, StreamRow};
use regatta_lab_views::wording::{self, run_text};

/// The sections of the page: the piece's id, and the title.
const SECTIONS: [(&str, &str); 6] = [
    ("latency", "Latency"),
    ("telemetry", "Sensors over time"),
    ("state", "State of the device"),
    ("evidence", "Evidence"),
    ("files", "Files"),
    ("repeat", "Repeat it"),
];

/// Renders the parts of the page that change.
pub(super) fn pieces(row: &RunRow, streams: &[StreamRow], charts: Option<&RunCharts>) -> Pieces {
    let mut pieces = Pieces::default();
    pieces.add("verdict", verdict(row));
    pieces.add("facts", facts::facts(row));
    pieces.add("latency", section("latency", &latency_chart::render(row, charts)));
    pieces.add(
        "telemetry",
        section("telemetry", &telemetry_charts::render(charts)),
    );
    pieces.add("state", section("state", &facts::device_state(row)));
    pieces.add("evidence", section("evidence", &facts::evidence(row)));
    pieces.add("files", section("files", &files::list(row, streams)));
    pieces.add("repeat", section("repeat", &repeat(row)));
    pieces
}

/// Renders the page of a run that was removed while it was watched.
pub(super) fn removed_pieces() -> Pieces {
    let mut pieces = Pieces::default();
    pieces.add(
        "verdict",
        html! { div #verdict { p .alarm { "This run was removed." } } },
    );
    pieces
}

/// Renders the page around the pieces.
pub(super) fn page(row: &RunRow, pieces: &Pieces) -> Page {
    let what = format!(
        "{} {} {} on {}",
        shown(&row.benchmark, NAME),
        row.scenario,
        shown(&run_text::mode(row), NAME),
        shown(&run_text::device(row), NAME)
    );
    let live = format!("/live/run/{}", row.id);
    let content = html! {
        p .path { a href="/runs" { "Runs" } " / " code { (row.id) } }
        h1 { (what) }
        (PreEscaped(pieces.html("verdict")))
        (PreEscaped(pieces.html("facts")))
        @for (id, _) in SECTIONS { (PreEscaped(pieces.html(id))) }
        p .note #live role="status" { "Reload the page for newer values." }
    };
    layout::page(&what, Some("/runs"), Some(&live), &content)
}

/// Puts a piece into a section with its title.
fn section(id: &str, content: &Markup) -> Markup {
    let title = SECTIONS
        .iter()
        .find(|(known, _)| *known == id)
        .map_or(id, |(_, title)| title);
    html! { section id=(id) { h2 { (title) } (*content) } }
}

fn verdict(row: &RunRow) -> Markup {
    let has_result = run_text::has_result(row);
    let reasons = if !has_result {
        row.state.reason.iter().cloned().collect()
    } else if row.outcome.is_some() && !row.is_good() {
        wording::run_problems(row)
    } else {
        Vec::new()
    };
    let waits = run_text::waits_for(row);
    let figures = [run_text::figure(row), run_text::accuracy(row)];
    let audit = wording::audit(row);
    let markers = marker_reasons(row);
    html! {
        div #verdict {
            p .headline {
                (badge(row))
                @for figure in figures.iter().flatten() { " " strong { (shown(figure, NAME)) } }
                @if let Some(waits) = waits { " " (shown(&waits, SENTENCE)) }
            }
            @if !reasons.is_empty() {
                h2 { "Reasons" }
                ul { @for reason in &reasons { li { (shown(reason, SENTENCE)) } } }
            }
            @if let Some(audit) = audit {
                @for line in audit.lines() { p { (shown(line, SENTENCE)) } }
            }
            @if !markers.is_empty() {
                h2 { "Why it cannot be submitted" }
                ul {
                    @for found in &markers {
                        li { span .badge .v-warn { (found.marker) } " " (shown(&found.reason, SENTENCE)) }
                    }
                }
            }
        }
    }
}

fn repeat(row: &RunRow) -> Markup {
    match repeat_command(row) {
        Ok(command) => html! { pre tabindex="0" { code { (shown(&command, 4_000)) } } },
        Err(reason) => html! { p { "No single command does: " (reason) "." } },
    }
}
