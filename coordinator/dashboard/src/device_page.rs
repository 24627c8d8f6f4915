//! The page of a device: its facts and current run, its health with the log, and the actions of operators.

use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};
use regatta_types::DeviceId;

use super::{
    access::Controls,
    action_forms,
    layout::{self, Page},
    outside_text::{NAME, SENTENCE, UNKNOWN, elapsed, path_segment, shown},
    pieces::Pieces,
};
use regatta_lab_store::{self as store, DeviceRow, HealthLogEntry, HealthOrigin, Store};
use regatta_lab_views::wording;

/// The longest reason of an operator, in characters.
pub(super) const MAX_NOTE: usize = 500;
/// The number of log entries that are shown.
const MAX_ENTRIES: usize = 50;

/// A device at one moment.
pub(super) struct DeviceSnapshot {
    pub(super) row: DeviceRow,
    log: Vec<HealthLogEntry>,
}

impl DeviceSnapshot {
    /// Reads a device. `None` for an id that no device of the lab has.
    pub(super) fn read(id: &str, store: &Store) -> store::Result<Option<Self>> {
        let Ok(id) = id.parse::<DeviceId>() else {
            return Ok(None);
        };
        let is_removed = store
            .members()
            .get(&id)?
            .is_some_and(|member| member.removed.is_some());
        let Some(row) = store.devices().get(&id)?.filter(|_| !is_removed) else {
            return Ok(None);
        };
        let log = store.health().log(&id)?;
        Ok(Some(Self { row, log }))
    }
}

/// Renders the parts of the page that change.
pub(super) fn pieces(snapshot: &DeviceSnapshot) -> Pieces {
    let mut pieces = Pieces::default();
    pieces.add("facts", facts(snapshot, Timestamp::now()));
    pieces.add("log", log(snapshot));
    pieces
}

/// Renders the page.
pub(super) fn page(snapshot: &DeviceSnapshot, controls: &Controls) -> Page {
    let row = &snapshot.row;
    let title = format!("Device {}", shown(&row.name, NAME));
    let pieces = pieces(snapshot);
    let live = format!("/live/device/{}", row.id);
    let content = html! {
        p .path { a href="/" { "Fleet" } }
        h1 { (title) }
        (PreEscaped(pieces.html("facts")))
        p { a href=(format!("/runs?device={}", path_segment(row.id.as_str()))) { "Its runs" } }
        (action_forms::section(controls, &[action(row, controls)]))
        (PreEscaped(pieces.html("log")))
        p .note #live role="status" { "Reload the page for newer values." }
    };
    layout::page(&title, Some("/"), Some(&live), &content)
}

fn action(row: &DeviceRow, controls: &Controls) -> Markup {
    if row.health.maintenance.is_some() {
        let path = format!("/device/{}/resume", row.id);
        return action_forms::form(controls, &path, "Put back into service", &html! {});
    }
    let note = html! {
        label { "Reason " input type="text" name="note" maxlength=(MAX_NOTE); }
    };
    let path = format!("/device/{}/drain", row.id);
    action_forms::form(controls, &path, "Take out of service", &note)
}

fn facts(snapshot: &DeviceSnapshot, now: Timestamp) -> Markup {
    let row = &snapshot.row;
    let health = row.health.health().as_str();
    let activity = row.activity().as_str();
    let HealthOrigin { since, by, cause } = row.health.shown();
    let facts = row.reported_facts().ok();
    let board = facts.as_ref().map_or("", |facts| facts.model.trim());
    html! {
        dl #facts .facts {
            dt { "State" } dd { span class={ "badge s-" (activity) } { (activity) } }
            dt { "Health" }
            dd {
                span class={ "badge h-" (health) } { (health) }
                @if health != "good" {
                    @if let Some(since) = since.and_then(|since| elapsed(since, now)) { " for " (since) }
                    @if let Some(by) = by { ", by " (shown(by, NAME)) }
                    @if let Some(cause) = cause { ": " (shown(cause, SENTENCE)) }
                }
            }
            dt { "Run" }
            dd { @match row.open_run { Some(run) => { a href={ "/run/" (run) } { (run) } } None => { "none" } } }
            dt { "Board" } dd { @if board.is_empty() { (UNKNOWN) } @else { (shown(board, NAME)) } }
            dt { "Agent" } dd { (shown(&row.agent, NAME)) }
            dt { "Id" } dd { code { (row.id) } }
        }
    }
}

fn log(snapshot: &DeviceSnapshot) -> Markup {
    html! {
        section #log {
            h2 { "Changes of its health" }
            @if snapshot.log.is_empty() {
                p .note { "None yet." }
            } @else {
                table role="table" aria-label="Changes of its health" {
                    thead role="rowgroup" { tr role="row" {
                        @for title in ["Time", "Change", "Health", "By", "Reason"] { th role="columnheader" scope="col" { (title) } }
                    } }
                    tbody role="rowgroup" {
                        @for entry in snapshot.log.iter().rev().take(MAX_ENTRIES) { (row(entry)) }
                    }
                }
                @if snapshot.log.len() > MAX_ENTRIES {
                    p .note { "Older ones: " code { "regatta device log " (snapshot.row.id) } }
                }
            }
        }
    }
}

fn row(entry: &HealthLogEntry) -> Markup {
    html! {
        tr role="row" {
            th role="rowheader" scope="row" data-title="Time" { (wording::time(&entry.at)) }
            td role="cell" data-title="Change" { (entry.change) }
            td role="cell" data-title="Health" { (entry.health) }
            td role="cell" data-title="By" { (shown(&entry.by, NAME)) }
            td role="cell" data-title="Reason" {
                @if let Some(reason) = &entry.reason { (shown(reason, SENTENCE)) }
            }
        }
    }
}
