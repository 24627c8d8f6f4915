//! The matrix of a campaign: a row for each device, a column for each combination, and a mark for each repetition.

use std::collections::BTreeMap;

use maud::{Markup, html};
use regatta_types::DeviceId;

use super::snapshot::{CampaignSnapshot, ShownState};
use crate::{
    outside_text::{NAME, SENTENCE, shown},
    pieces::Pieces,
};
use regatta_lab_store::CellRow;

/// The maximum number of cells of a device and combination that are drawn one by one. Beyond it, only their number is shown.
const MAX_MARKS: usize = 10;

impl ShownState {
    /// Returns the word, which is also the class in the style sheet.
    const fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Skipped => "skipped",
        }
    }

    const fn mark(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Running => "▶",
            Self::Failed => "✗",
            Self::Waiting => "…",
            Self::Skipped => "–",
        }
    }
}

/// Renders the head.
pub(super) fn head(snapshot: &CampaignSnapshot) -> Markup {
    html! {
        thead { tr {
            th scope="col" { "Device" }
            @for subject in &snapshot.subjects { th scope="col" { (shown(&subject.words(), NAME)) } }
        } }
    }
}

/// Adds a row for each device, and one for the cells that no device has yet.
pub(super) fn add_rows(snapshot: &CampaignSnapshot, pieces: &mut Pieces) {
    for (device, name) in snapshot.devices() {
        let id = format!("m-{device}");
        let html = row(snapshot, &id, &shown(&name, NAME), Some(device));
        pieces.add_row(id, html);
    }
    let is_any_unplaced = snapshot
        .subjects
        .iter()
        .any(|subject| !snapshot.cells_on(subject.combination, None).is_empty());
    if is_any_unplaced {
        let id = "m-unplaced".to_owned();
        let html = row(snapshot, &id, "on no device yet", None);
        pieces.add_row(id, html);
    }
}

fn row(snapshot: &CampaignSnapshot, id: &str, name: &str, device: Option<&DeviceId>) -> Markup {
    html! {
        tr id=(id) {
            th scope="row" { (name) }
            @for subject in &snapshot.subjects {
                td { (marks(snapshot, &snapshot.cells_on(subject.combination, device))) }
            }
        }
    }
}

fn marks(snapshot: &CampaignSnapshot, cells: &[&CellRow]) -> Markup {
    if cells.len() > MAX_MARKS {
        let mut counts: BTreeMap<ShownState, usize> = BTreeMap::new();
        for cell in cells {
            *counts.entry(snapshot.state(cell)).or_default() += 1;
        }
        return html! {
            @for (state, count) in counts { span class={ "cell " (state.word()) } { (count) " " (state.mark()) } " " }
        };
    }
    html! { @for cell in cells { (mark(snapshot, cell)) " " } }
}

fn mark(snapshot: &CampaignSnapshot, cell: &CellRow) -> Markup {
    let state = snapshot.state(cell);
    let class = format!("cell {}", state.word());
    let mut text = format!(
        "cell {}, repetition {}: {}",
        cell.number,
        cell.repetition,
        state.word()
    );
    if let Some(cause) = cell.cause {
        text.push_str(&format!(", {cause}"));
    }
    if let Some(reason) = &cell.reason {
        text.push_str(&format!(", {}", shown(reason, SENTENCE)));
    }
    match snapshot.run_of(cell.number) {
        Some(run) => {
            html! { a class=(class) href={ "/run/" (run) } title=(text) aria-label=(text) { (state.mark()) } }
        }
        None => html! { span class=(class) role="img" title=(text) aria-label=(text) { (state.mark()) } },
    }
}
