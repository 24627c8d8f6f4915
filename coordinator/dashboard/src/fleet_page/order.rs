//! Selects and sorts the devices of the fleet page.

use std::cmp::Ordering;

use jiff::Timestamp;

use crate::{
    fleet_query::{FleetQuery, SortKey},
    fleet_snapshot::{FleetDevice, FleetSnapshot},
};
use regatta_lab_store::DeviceActivity;

/// Returns the devices that match a query, in its order. Devices without a value come last, in both directions.
pub fn selected<'a>(query: &FleetQuery, fleet: &'a FleetSnapshot) -> Vec<&'a FleetDevice> {
    let mut devices: Vec<&FleetDevice> = fleet
        .devices
        .iter()
        .filter(|device| matches(query, device))
        .collect();
    devices.sort_by(|one, other| {
        let by_key = compare(query, one, other);
        by_key
            .then_with(|| natural(&one.row.name, &other.row.name))
            .then_with(|| one.row.id.cmp(&other.row.id))
    });
    devices
}

fn matches(query: &FleetQuery, device: &FleetDevice) -> bool {
    let row = &device.row;
    let has_text = |text: &str| text.to_lowercase().contains(&query.text);
    let board = device.facts.as_ref().map_or("", |facts| facts.model.as_str());
    let labels: Vec<String> = row.labels.iter().map(ToString::to_string).collect();
    let found = query.text.is_empty()
        || has_text(&row.name)
        || has_text(row.id.as_str())
        || has_text(board)
        || labels.iter().any(|label| has_text(label));
    found
        && query.state.is_none_or(|state| row.activity() == state)
        && query.health.is_none_or(|health| row.health.health() == health)
        && (query.label.is_empty() || labels.contains(&query.label))
}

fn compare(query: &FleetQuery, one: &FleetDevice, other: &FleetDevice) -> Ordering {
    let known = |value: fn(&FleetDevice) -> Option<i64>| match (value(one), value(other)) {
        (Some(one), Some(other)) => directed(query, one.cmp(&other)),
        (one, other) => other.is_some().cmp(&one.is_some()),
    };
    match query.sort {
        SortKey::Name => directed(query, natural(&one.row.name, &other.row.name)),
        SortKey::State => directed(query, state_rank(one).cmp(&state_rank(other))),
        SortKey::Health => directed(query, health_rank(one).cmp(&health_rank(other))),
        SortKey::Run => known(|device| {
            let started: Timestamp = device.run.as_ref()?.started.as_ref()?.parse().ok()?;
            // The longest last: it started first.
            Some(-started.as_second())
        }),
        SortKey::Queued => directed(query, one.queued.cmp(&other.queued)),
        SortKey::Temperature => known(|device| device.row.hottest_millicelsius(device.facts.as_ref())),
        SortKey::Power => known(|device| i64::try_from(device.row.readings.milliwatts?).ok()),
        SortKey::Clock => known(|device| i64::try_from(device.facts.as_ref()?.cpu_khz?).ok()),
    }
}

const fn directed(query: &FleetQuery, order: Ordering) -> Ordering {
    if query.is_descending {
        order.reverse()
    } else {
        order
    }
}

const fn state_rank(device: &FleetDevice) -> u8 {
    match device.row.activity() {
        DeviceActivity::Busy => 0,
        DeviceActivity::Idle => 1,
        DeviceActivity::Offline => 2,
        DeviceActivity::Duplicated => 3,
    }
}

fn health_rank(device: &FleetDevice) -> u8 {
    // Good, suspect, quarantined, maintenance.
    device.row.health.health() as u8
}

/// Compares names so that boat-2 comes before boat-10.
fn natural(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one, other);
    loop {
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (Some(first), Some(second)) = (one.chars().next(), other.chars().next()) else {
            return one.len().cmp(&other.len());
        };
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let ((number, rest), (second_number, second_rest)) =
                (one.split_at(digits(one)), other.split_at(digits(other)));
            let (number, second_number) = (
                number.trim_start_matches('0'),
                second_number.trim_start_matches('0'),
            );
            let order = number
                .len()
                .cmp(&second_number.len())
                .then_with(|| number.cmp(second_number));
            if order.is_ne() {
                return order;
            }
            (one, other) = (rest, second_rest);
        } else if first == second {
            (one, other) = (&one[first.len_utf8()..], &other[second.len_utf8()..]);
        } else {
            return first.cmp(&second);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_sort_by_value() {
        let mut names = [
            "boat-10",
            "boat-2",
            "boat",
            "boat-2a",
            "boat-02",
            "ärger",
            "boat-9999999999999999999999",
        ];
        names.sort_by(|one, other| natural(one, other));
        assert_eq!(
            names,
            [
                "boat",
                "boat-2",
                "boat-02",
                "boat-2a",
                "boat-10",
                "boat-9999999999999999999999",
                "ärger"
            ]
        );
    }
}
