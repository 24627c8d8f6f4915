//! The page of campaigns: each in one line, the newest first.

use maud::{Markup, PreEscaped, html};

use super::{
    layout::{self, Page},
    outside_text::{NAME, path_segment, shown},
    pieces::Pieces,
};
use regatta_lab_store::Store;
use regatta_lab_views::{
    documents::{CampaignSummary, campaign_summary},
    wording,
};

/// Reads the campaigns, newest first.
pub(super) fn read(store: &Store) -> anyhow::Result<Vec<CampaignSummary>> {
    let rows = store.campaigns().all()?;
    let summaries = rows.iter().rev().map(|row| campaign_summary(row, store));
    summaries.collect()
}

/// Renders the parts of the page that change.
pub(super) fn pieces(summaries: &[CampaignSummary]) -> Pieces {
    let mut pieces = Pieces::default();
    pieces.add("empty", html! {
        p #empty .note {
            @if summaries.is_empty() { "No campaign yet. Start one with " code { "regatta campaign start PLAN.toml" } "." }
            @else { (summaries.len()) " campaigns, the newest first:" }
        }
    });
    for summary in summaries {
        let id = format!("c-{}", summary.campaign);
        let html = html! {
            tr id=(id) role="row" {
                th role="rowheader" scope="row" data-title="Campaign" {
                    a .name href={ "/campaign/" (path_segment(&summary.campaign)) } { (shown(&summary.campaign, NAME)) }
                }
                td role="cell" data-title="State" { (badge(summary.state)) }
                td role="cell" data-title="Started" { (wording::time(&summary.started)) }
                td role="cell" data-title="Cells" { (progress(summary)) }
            }
        };
        pieces.add_row(id, html);
    }
    pieces
}

/// Renders the page around the pieces.
pub(super) fn page(pieces: &Pieces) -> Page {
    let content = html! {
        h1 { "Campaigns" }
        (PreEscaped(pieces.html("empty")))
        table role="table" aria-label="Campaigns" {
            thead role="rowgroup" { tr role="row" {
                @for title in ["Campaign", "State", "Started", "Cells"] { th role="columnheader" scope="col" { (title) } }
            } }
            tbody data-rows role="rowgroup" { @for row in pieces.rows() { (PreEscaped(row)) } }
        }
        p .note #live role="status" { "Reload the page for newer values." }
    };
    layout::page("Campaigns", Some("/campaigns"), Some("/live/campaigns"), &content)
}

/// Renders a campaign's state.
pub(super) fn badge(state: &str) -> Markup {
    let class = match state {
        "running" => "busy",
        "paused" | "aborting" | "aborted" => "warn",
        _ => "plain",
    };
    html! { span class={ "badge v-" (class) } { (state) } }
}

/// Renders the cells by their state as a bar, and in words.
pub(super) fn progress(summary: &CampaignSummary) -> Markup {
    let counts = wording::campaign_counts(summary);
    let parts = [
        (summary.good, "good"),
        (summary.failed, "failed"),
        (summary.skipped, "skipped"),
        (summary.running, "running"),
    ];
    let begins = parts.iter().scan(0, |end, (count, _)| {
        *end += count;
        Some(*end - count)
    });
    let cells = summary.cells.max(1);
    html! {
        svg .progress viewBox={ "0 0 " (cells) " 1" } preserveAspectRatio="none" role="img" aria-label=(counts) {
            @for ((count, class), begin) in parts.iter().zip(begins) {
                @if *count > 0 { rect class=(class) x=(begin) width=(count) height="1" {} }
            }
        }
        " " (counts)
    }
}
