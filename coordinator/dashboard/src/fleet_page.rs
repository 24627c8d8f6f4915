//! The fleet page: a summary, a filter and one row for each device. The rows are pieces, so that a change replaces only what changed.

mod device_row;
mod order;

use maud::{Markup, PreEscaped, html};

use self::device_row::device_row;
pub use self::order::selected;
use super::{
    fleet_query::{FleetQuery, SortKey},
    fleet_snapshot::FleetSnapshot,
    layout::{self, Page},
    outside_text::elapsed,
    pieces::Pieces,
};
use regatta_lab_store::{DeviceActivity, DeviceHealth};

/// The table's columns: key and title.
const COLUMNS: [(SortKey, &str); 7] = [
    (SortKey::Name, "Device"),
    (SortKey::State, "State"),
    (SortKey::Health, "Health"),
    (SortKey::Run, "Run"),
    (SortKey::Queued, "Waiting"),
    (SortKey::Temperature, "Temperature*"),
    (SortKey::Clock, "CPU clock*"),
];

/// Renders the parts of the page that change.
pub(super) fn pieces(query: &FleetQuery, fleet: &FleetSnapshot) -> Pieces {
    let mut pieces = Pieces::default();
    let devices = selected(query, fleet);
    pieces.add("summary", summary(fleet));
    pieces.add("shown", shown_count(query, devices.len(), fleet));
    for device in devices {
        let id = format!("d-{}", device.row.id);
        let row = device_row(&id, device, fleet.read);
        pieces.add_row(id, row);
    }
    pieces
}

/// Renders the page around the pieces.
pub(super) fn page(query: &FleetQuery, pieces: &Pieces, labels: &[String]) -> Page {
    let text = query.to_query();
    let live = format!("/live/fleet?{text}");
    let content = html! {
        h1 { "Fleet" }
        (PreEscaped(pieces.html("summary")))
        (filter(query, labels))
        (PreEscaped(pieces.html("shown")))
        table .devices role="table" aria-label="Devices" {
            thead role="rowgroup" {
                tr role="row" {
                    @for (key, title) in COLUMNS { (heading(query, key, title)) }
                    th role="columnheader" scope="col" { "Labels" }
                }
            }
            tbody data-rows role="rowgroup" {
                @for row in pieces.rows() { (PreEscaped(row)) }
            }
        }
        p .note { "* Temperature: at the last heartbeat. CPU clock: when the agent last connected. – means that the lab does not know." }
        p .note #live role="status" { "Reload the page for newer values." }
    };
    layout::page("Fleet", Some("/"), Some(&live), &content)
}

/// Returns a column's heading: a link that sorts by it.
fn heading(query: &FleetQuery, key: SortKey, title: &str) -> Markup {
    let is_sorted = query.sort == key;
    let direction = if query.is_descending {
        "descending"
    } else {
        "ascending"
    };
    let link = format!("/?{}", query.sorted_by(key).to_query());
    html! {
        th role="columnheader" scope="col" aria-sort=[is_sorted.then_some(direction)] {
            a href=(link) { (title) }
        }
    }
}

fn summary(fleet: &FleetSnapshot) -> Markup {
    let count = |activity: DeviceActivity| {
        let devices = fleet.devices.iter();
        devices.filter(|device| device.row.activity() == activity).count()
    };
    let in_health = |health: DeviceHealth| {
        let devices = fleet.devices.iter();
        devices
            .filter(|device| device.row.health.health() == health)
            .count()
    };
    let queued: u64 = fleet.devices.iter().map(|device| device.queued).sum();
    let counts = [
        ("busy", count(DeviceActivity::Busy)),
        ("idle", count(DeviceActivity::Idle)),
        ("offline", count(DeviceActivity::Offline)),
        ("duplicated", count(DeviceActivity::Duplicated)),
    ];
    let healths = [
        ("suspect", in_health(DeviceHealth::Suspect)),
        ("quarantined", in_health(DeviceHealth::Quarantined)),
        ("in maintenance", in_health(DeviceHealth::Maintenance)),
    ];
    let present = |(_, count): &(&str, usize)| *count > 0;
    html! {
        div #summary {
            @if let Some(since) = &fleet.broker_lost {
                p .alarm { "The coordinator lost the broker" @if let Some(ago) = elapsed(since, fleet.read) { " " (ago) " ago" } ": no messages of devices arrive." }
            }
            @if fleet.refused > 0 {
                p .alarm { (fleet.refused) " more devices speak another wire version: update their agents." }
            }
            ul .counts {
                li { strong { (fleet.devices.len()) } " devices" }
                @for (word, count) in counts.iter().filter(|part| present(part)) {
                    li { span class={ "badge s-" (word) } { (word) } " " strong { (count) } }
                }
                @for (word, count) in healths.iter().filter(|part| present(part)) {
                    li { span class={ "badge h-" (word.trim_start_matches("in ")) } { (word) } " " strong { (count) } }
                }
                li { strong { (queued) } " waiting runs" }
            }
        }
    }
}

fn shown_count(query: &FleetQuery, shown: usize, fleet: &FleetSnapshot) -> Markup {
    html! {
        p #shown .note {
            @if fleet.devices.is_empty() {
                "No device has connected yet. Add one with " code { "regatta device add NAME" } "."
            } @else if query.is_unfiltered() {
                "All devices:"
            } @else {
                (shown) " of " (fleet.devices.len()) " devices match. " a href="/" { "Show all" }
            }
        }
    }
}

fn filter(query: &FleetQuery, labels: &[String]) -> Markup {
    let options = |name: &'static str, title: &str, words: &[&str], chosen: Option<&str>| {
        html! {
            label { (title) " "
                select name=(name) {
                    option value="" { "any" }
                    @for word in words {
                        option value=(word) selected[chosen == Some(*word)] { (word) }
                    }
                }
            }
        }
    };
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    html! {
        form .filter method="get" action="/" role="search" {
            label { "Find " input type="search" name="text" value=(query.text) maxlength="100"; }
            (options("state", "State", &DeviceActivity::ALL.map(DeviceActivity::as_str), query.state.map(DeviceActivity::as_str)))
            (options("health", "Health", &DeviceHealth::ALL.map(DeviceHealth::as_str), query.health.map(DeviceHealth::as_str)))
            @if !labels.is_empty() {
                (options("label", "Label", &labels, Some(query.label.as_str())))
            }
            input type="hidden" name="sort" value=(query.sort.as_str());
            @if query.is_descending { input type="hidden" name="order" value="down"; }
            button { "Show" }
        }
    }
}
