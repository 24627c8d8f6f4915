//! `regatta device label`: shows and changes the labels of a device. [`regatta_lab_views::lookup`] selects devices by label.

use std::{collections::BTreeSet, ffi::OsString};

use super::Context;
use crate::{exit::Failure, tables};
use regatta_lab_store::{DeviceLabel, Store};
use regatta_lab_views::lookup;

/// Flags of `device label`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The device's name or id
    device: String,
    /// Labels to add, such as +edge, and to remove, such as -edge [default: show the labels]
    #[arg(value_name = "+LABEL|-LABEL", allow_hyphen_values = true)]
    changes: Vec<String>,
}

/// Changes and prints the labels of a device.
pub(super) fn run(args: &Args, context: &Context, store: &Store) -> Result<(), Failure> {
    let (mut added, mut removed) = (BTreeSet::new(), BTreeSet::new());
    for change in &args.changes {
        let (labels, word) = match (change.strip_prefix('+'), change.strip_prefix('-')) {
            (Some(word), _) => (&mut added, word),
            (None, Some(word)) => (&mut removed, word),
            (None, None) => {
                return Err(Failure::misuse(format!("`{change}` begins with neither + nor -"))
                    .hint(format!("+{change} adds the label, -{change} removes it")));
            }
        };
        labels.insert(word.parse::<DeviceLabel>().map_err(Failure::usage)?);
    }
    if let Some(both) = added.intersection(&removed).next() {
        return Err(Failure::misuse(format!(
            "the label `{both}` is both added and removed"
        )));
    }
    let device = lookup::device(store, Some(&args.device))?;
    if let Some(absent) = removed.iter().find(|label| !device.labels.contains(label)) {
        return Err(Failure::misuse(format!(
            "{} has no label `{absent}`; it has {}",
            device.name,
            tables::labels(&device.labels)
        )));
    }
    store.labels().change(&device.id, &added, &removed)?;
    let device = lookup::device(store, Some(device.id.as_str()))?;
    let document = serde_json::json!({ "device": device.id, "name": device.name, "labels": device.labels });
    context.print(&document, || {
        format!("{}: {}", device.name, tables::labels(&device.labels))
    })?;
    Ok(())
}

/// Moves options behind the changes of `device label` to the front of the command line. There the parser takes every word with a hyphen for
/// a change, but no label begins with a hyphen.
pub(super) fn options_first(mut words: Vec<OsString>) -> Vec<OsString> {
    let begins = |word: &OsString, start: &str| word.to_string_lossy().starts_with(start);
    let command = words
        .windows(2)
        .position(|pair| pair[0] == "device" && pair[1] == "label");
    let changes = command.and_then(|command| {
        let mut rest = words.iter().enumerate().skip(command + 2);
        rest.find(|(_, word)| begins(word, "+") || (begins(word, "-") && !begins(word, "--")))
    });
    let Some((first_change, _)) = changes else {
        return words;
    };
    let mut rest = words.iter().skip(first_change);
    let Some(option) = rest.position(|word| begins(word, "--")) else {
        return words;
    };
    let mut moved = words.split_off(first_change + option);
    moved.insert(0, words.remove(0));
    moved.extend(words);
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_may_follow_the_labels() {
        let moved = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            let words = options_first(words).into_iter();
            words
                .map(|word| word.into_string().unwrap())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            moved("regatta device label boat +a -b --format json"),
            "regatta --format json device label boat +a -b"
        );
        for line in [
            "regatta device label boat -b",
            "regatta device label boat --format json -b",
            "regatta device label --help",
            "regatta device list --format json",
        ] {
            assert_eq!(moved(line), line);
        }
    }
}
