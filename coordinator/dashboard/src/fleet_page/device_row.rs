//! One device as a row of the fleet page.

use jiff::Timestamp;
use maud::{Markup, html};
use regatta_types::documents::RunPhase;

use crate::{
    fleet_snapshot::FleetDevice,
    outside_text::{UNKNOWN, elapsed, shown},
};
use regatta_lab_store::{CurrentRun, DeviceActivity, HealthOrigin};
use regatta_lab_views::wording;

/// Limits of texts in characters.
const NAME: usize = 64;
const BOARD: usize = 80;
const CAUSE: usize = 240;
const WORD: usize = 40;
/// The temperature from which a device is marked. Jetsons slow themselves down from 95 °C on, and within ten minutes a run warms its board
/// up by about ten degrees.
const HOT_MILLICELSIUS: i64 = 85_000;

/// Renders a device.
pub(super) fn device_row(id: &str, device: &FleetDevice, now: Timestamp) -> Markup {
    let row = &device.row;
    let facts = device.facts.as_ref();
    let board = facts.map_or("", |facts| facts.model.trim());
    let temperature = row.hottest_millicelsius(facts);
    let clock = facts.and_then(|facts| facts.cpu_khz);
    html! {
        tr id=(id) role="row" {
            th role="rowheader" scope="row" data-title="Device" {
                a .name href={ "/device/" (row.id) } { (shown(&row.name, NAME)) }
                span .detail { code title=(row.id.as_str()) { (row.id.as_str().get(..8).unwrap_or_default()) } }
                @if !board.is_empty() { span .detail { (shown(board, BOARD)) } }
            }
            td role="cell" data-title="State" { (state(device, now)) }
            td role="cell" data-title="Health" { (health(device, now)) }
            td role="cell" data-title="Run" {
                @match &device.run {
                    Some(run) => (current_run(run, now)),
                    None => (UNKNOWN_RUN),
                }
            }
            td .number role="cell" data-title="Waiting" { (device.queued) }
            td .number role="cell" data-title="Temperature*" {
                @match temperature {
                    Some(value) if value >= HOT_MILLICELSIUS => {
                        span .badge .v-bad title="Boards slow themselves down when they get hotter." { (degrees(value)) " hot" }
                    }
                    Some(value) => { (degrees(value)) }
                    None => { (UNKNOWN) }
                }
            }
            td .number role="cell" data-title="CPU clock*" {
                @match clock {
                    Some(value) => { (format!("{} MHz", value / 1_000)) }
                    None => { (UNKNOWN) }
                }
            }
            td role="cell" data-title="Labels" {
                @for label in &row.labels {
                    a .label href={ "/?label=" (label) } { (label) } " "
                }
            }
        }
    }
}

fn degrees(millicelsius: i64) -> String {
    format!("{:.1} °C", millicelsius as f64 / 1e3)
}

/// The text of a device without a run.
const UNKNOWN_RUN: &str = "none";

fn state(device: &FleetDevice, now: Timestamp) -> Markup {
    let row = &device.row;
    let activity = row.activity();
    let heard = elapsed(&row.last_seen, now);
    let silence = wording::age(&row.last_seen, now).unwrap_or(0);
    let note = match activity {
        DeviceActivity::Duplicated => Some("two agents use its identity".to_owned()),
        DeviceActivity::Offline => heard.map(|heard| format!("last heard {heard} ago")),
        _ if silence >= row.silent_after_s() => heard.map(|heard| format!("silent for {heard}")),
        _ => None,
    };
    html! {
        span class={ "badge s-" (activity.as_str()) } { (activity.as_str()) }
        @if let Some(note) = note { span .detail { (note) } }
    }
}

fn health(device: &FleetDevice, now: Timestamp) -> Markup {
    let health = device.row.health.health().as_str();
    let HealthOrigin { since, by, cause } = device.row.health.shown();
    html! {
        span class={ "badge h-" (health) } { (health) }
        @if health != "good" {
            span .detail {
                @if let Some(since) = since.and_then(|since| elapsed(since, now)) { "for " (since) }
                @if let Some(by) = by { ", by " (shown(by, WORD)) }
            }
            @if let Some(cause) = cause { span .detail { (shown(cause, CAUSE)) } }
        }
    }
}

fn current_run(run: &CurrentRun, now: Timestamp) -> Markup {
    let started = run.started.as_deref().filter(|_| run.phase == RunPhase::Running);
    html! {
        a href={ "/run/" (run.id) } { (shown(&run.benchmark, WORD)) " " (shown(&run.scenario, WORD)) " " (shown(&run.mode, WORD)) }
        span .detail {
            (run.phase.as_str())
            @if let Some(started) = started.and_then(|started| elapsed(started, now)) { ", LoadGen for " (started) }
        }
    }
}
