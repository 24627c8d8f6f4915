//! The page of a campaign: its progress, a matrix of devices and combinations with the state of every cell, and the causes of failed cells.

mod control;
mod matrix;
mod snapshot;

use maud::{Markup, PreEscaped, html};
use regatta_text::quote_for_shell_if_needed;
use regatta_types::documents::EndCause;

pub(super) use self::snapshot::CampaignSnapshot;
use super::{
    access::Controls,
    campaign_list_page::{badge, progress},
    layout::{self, Page},
    outside_text::{NAME, SENTENCE, path_segment, shown},
    pieces::Pieces,
};
use regatta_lab_views::{documents::CampaignStatus, wording};

/// The number of failed cells that are listed.
const MAX_FAILED: usize = 50;

/// Renders the parts of the page that change.
pub(super) fn pieces(snapshot: &CampaignSnapshot) -> Pieces {
    let mut pieces = Pieces::default();
    pieces.add("progress", summary(&snapshot.status));
    pieces.add("failed", failed(snapshot));
    pieces.add("log", control::log(snapshot));
    matrix::add_rows(snapshot, &mut pieces);
    pieces
}

/// Renders the page around the pieces.
pub(super) fn page(snapshot: &CampaignSnapshot, pieces: &Pieces, controls: &Controls) -> Page {
    let name = &snapshot.status.summary.campaign;
    let title = format!("Campaign {}", shown(name, NAME));
    let live = format!("/live/campaign/{}", path_segment(name));
    let content = html! {
        p .path { a href="/campaigns" { "Campaigns" } }
        h1 { (title) }
        (PreEscaped(pieces.html("progress")))
        h2 { "Cells" }
        p .note {
            "A mark is a repetition: " span .cell .good { "✓" } " good, " span .cell .running { "▶" } " running, "
            span .cell .waiting { "…" } " waiting, " span .cell .failed { "✗" } " failed, " span .cell .skipped { "–" }
            " skipped. It leads to the newest attempt."
        }
        div .wide role="region" aria-label="Cells" tabindex="0" {
            table .matrix {
                (matrix::head(snapshot))
                tbody data-rows { @for row in pieces.rows() { (PreEscaped(row)) } }
            }
        }
        (PreEscaped(pieces.html("failed")))
        (control::actions(snapshot, controls))
        (PreEscaped(pieces.html("log")))
        p .note #live role="status" { "Reload the page for newer values." }
    };
    layout::page(&title, Some("/campaigns"), Some(&live), &content)
}

fn summary(status: &CampaignStatus) -> Markup {
    let summary = &status.summary;
    html! {
        div #progress {
            @for what in &status.attention { p .alarm { (shown(what, SENTENCE)) } }
            p .headline { (badge(summary.state)) " " (progress(summary)) }
            dl .facts {
                dt { "Started" } dd { (wording::time(&summary.started)) }
                @if let Some(ended) = &summary.ended { dt { "Ended" } dd { (wording::time(ended)) } }
                @if let Some(deadline) = &summary.deadline { dt { "Deadline" } dd { (wording::time(deadline)) } }
                dt { "Attempts" } dd { (status.attempts) }
                @if summary.ended.is_none() { dt { "Time left" } dd { (wording::campaign_time_left(status)) } }
                @if !status.causes.is_empty() {
                    dt { "Failed by" }
                    dd { @for (number, (cause, count)) in status.causes.iter().enumerate() { @if number > 0 { ", " } (cause) ": " (count) } }
                }
                @if let Some(why) = &status.skipped_because { dt { "Skipped" } dd { (shown(why, SENTENCE)) } }
            }
        }
    }
}

/// Returns the command that tries the cells with this cause again.
fn retry_command(snapshot: &CampaignSnapshot, cause: EndCause) -> String {
    let name = &snapshot.status.summary.campaign;
    let name = quote_for_shell_if_needed(name);
    format!("regatta campaign retry {} --cause {cause}", shown(&name, NAME))
}

fn failed(snapshot: &CampaignSnapshot) -> Markup {
    let cells = &snapshot.status.failed_cells;
    html! {
        section #failed {
            @if !cells.is_empty() {
                h2 { "Failed cells" }
                table .failures role="table" aria-label="Failed cells" {
                    thead role="rowgroup" { tr role="row" {
                        @for title in ["Cell", "Device", "Runs", "Cause", "Reason"] { th role="columnheader" scope="col" { (title) } }
                    } }
                    tbody role="rowgroup" {
                        @for cell in cells.iter().rev().take(MAX_FAILED) {
                            tr role="row" {
                                th role="rowheader" scope="row" data-title="Cell" {
                                    @match snapshot.run_of(cell.cell) {
                                        Some(run) => { a href={ "/run/" (run) } { (cell.cell) } }
                                        None => { (cell.cell) }
                                    }
                                }
                                td role="cell" data-title="Device" { (shown(&snapshot.device_name_of(cell.cell).unwrap_or_default(), NAME)) }
                                td role="cell" data-title="Runs" { (shown(&cell.subject.words(), NAME)) ", repetition " (cell.repetition) }
                                td role="cell" data-title="Cause" { (cell.cause) }
                                td role="cell" data-title="Reason" { (shown(&cell.reason, SENTENCE)) }
                            }
                        }
                    }
                }
                @if cells.len() > MAX_FAILED {
                    p .note {
                        (cells.len() - MAX_FAILED) " more: " code { "regatta campaign report " (shown(&snapshot.status.summary.campaign, NAME)) }
                    }
                }
                p .note { "Commands that try them again, by cause:" }
                ul .plain { @for cause in snapshot.status.causes.keys() { li { code { (retry_command(snapshot, *cause)) } } } }
            }
        }
    }
}
