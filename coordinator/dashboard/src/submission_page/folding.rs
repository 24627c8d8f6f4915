//! Combines equal findings about many places, for example the same missing fields in the descriptions of fifty systems.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::outside_text::{SENTENCE, shown};

/// The number of places that are shown at once, and of those that are listed.
const MAX_AT_ONCE: usize = 3;
const MAX_LISTED: usize = 20;

/// Returns equal findings, in the order of the first of each, with all their places.
pub(super) fn folded<'a, T: 'a, K: Ord + Clone, P>(
    findings: impl IntoIterator<Item = &'a T>,
    words: impl Fn(&'a T) -> K,
    place: impl Fn(&'a T) -> P,
) -> Vec<(K, Vec<P>)> {
    let mut folded: Vec<(K, Vec<P>)> = Vec::new();
    let mut rows: BTreeMap<K, usize> = BTreeMap::new();
    for finding in findings {
        let key = words(finding);
        let row = *rows.entry(key.clone()).or_insert(folded.len());
        match folded.get_mut(row) {
            Some((_, places)) => places.push(place(finding)),
            None => folded.push((key, vec![place(finding)])),
        }
    }
    folded
}

/// The text before the device in a remedy for it.
const DEVICE: &str = " --device ";

/// Splits a command that ends with its only device.
pub(super) fn split_device(remedy: &str) -> (&str, Option<&str>) {
    match remedy.rsplit_once(DEVICE) {
        Some((command, device)) if !device.contains(' ') => (command, Some(device)),
        _ => (remedy, None),
    }
}

/// Returns a command for all the devices that it was split from.
pub(super) fn join_devices<'a>(command: &str, devices: impl Iterator<Item = &'a str>) -> String {
    let devices: BTreeSet<&str> = devices.collect();
    if devices.is_empty() {
        return command.to_owned();
    }
    let devices: Vec<&str> = devices.into_iter().collect();
    format!("{command}{DEVICE}{}", devices.join(","))
}

/// Renders the places of a finding.
pub(super) fn places(places: &[String]) -> Markup {
    html! {
        @if places.len() <= MAX_AT_ONCE {
            @for (number, place) in places.iter().enumerate() { @if number > 0 { br; } (shown(place, SENTENCE)) }
        } @else {
            details {
                summary { (places.len()) " places" }
                ul .notes { @for place in places.iter().take(MAX_LISTED) { li { (shown(place, SENTENCE)) } } }
                @if places.len() > MAX_LISTED { (places.len() - MAX_LISTED) " more are not listed." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_differ_by_their_device_are_one() {
        let remedies = [
            "regatta run --mode AccuracyOnly --device boat-2",
            "regatta run --mode AccuracyOnly --device boat-1",
            "set `code`",
        ];
        let split = remedies.map(split_device);
        assert_eq!(split[0], ("regatta run --mode AccuracyOnly", Some("boat-2")));
        assert_eq!(split[2], ("set `code`", None));
        let devices = split[..2].iter().filter_map(|(_, device)| *device);
        assert_eq!(
            join_devices(split[0].0, devices),
            "regatta run --mode AccuracyOnly --device boat-1,boat-2"
        );
        assert_eq!(join_devices(split[2].0, [].into_iter()), "set `code`");
    }

    #[test]
    fn equal_findings_of_many_places_are_one_row() {
        let findings: Vec<(String, String)> = (0..50)
            .flat_map(|system| {
                ["hw_notes", "sw_notes"].map(|field| (format!("system boat-{system}"), field.to_owned()))
            })
            .chain([("answers".to_owned(), "submitter".to_owned())])
            .collect();
        let rows = folded(&findings, |(_, field)| field.clone(), |(place, _)| place.clone());
        let counts: Vec<(&str, usize)> = rows
            .iter()
            .map(|(field, places)| (field.as_str(), places.len()))
            .collect();
        assert_eq!(counts, [("hw_notes", 50), ("sw_notes", 50), ("submitter", 1)]);
        let many = places(&rows[0].1).into_string();
        assert!(
            many.contains("50 places") && many.contains("boat-19<") && !many.contains("boat-20<"),
            "{many}"
        );
        assert!(many.contains("30 more are not listed"), "{many}");
        assert_eq!(places(&rows[2].1).into_string(), "answers");
    }
}
