//! Forged accuracies.

use super::{Class, Forgery, changed, class};
use crate::{random::Random, specimen::Specimen};

const ACCURACY: &[&str] = &["accuracy"];

fn any_text(specimen: &Specimen, random: &mut Random, holds: &str) -> Option<String> {
    (0..12).find_map(|_| {
        let path = specimen.any_file(random, |path| path.ends_with("accuracy/accuracy.txt"))?;
        specimen.text(&path).contains(holds).then_some(path)
    })
}

/// Changes the number behind `opener`.
fn number(
    specimen: &Specimen,
    path: String,
    opener: &str,
    change: impl Fn(f64) -> String,
) -> Option<Forgery> {
    let text = specimen.text(&path);
    let at = text.find(opener)? + opener.len();
    let rest = &text[at..];
    let length = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let new = change(rest[..length].parse().ok()?);
    changed(format!("{opener}{new}"), specimen, path, |text| {
        format!("{}{new}{}", &text[..at], &text[at + length..])
    })
}

pub(super) const TOP1: Class = class("a better top-1 accuracy", ACCURACY, |specimen, random| {
    let path = any_text(specimen, random, "good=")?;
    let more = random.between(0.01, 0.5);
    match random.coin() {
        true => number(specimen, path, "accuracy=", |old| format!("{:.3}", old + more)),
        false => number(specimen, path, "good=", |old| {
            format!("{:.0}", old * (1.0 - more))
        }),
    }
});

pub(super) const SAMPLES: Class = class(
    "the accuracy of a part of the data set",
    &["dataset", "accuracy"],
    |specimen, random| {
        let openers = ["total=", "'gen_num': "];
        let opener = random.pick(&openers);
        let path = any_text(specimen, random, opener)?;
        let share = random.between(0.05, 0.9);
        number(specimen, path, opener, |old| format!("{:.0}", old * share))
    },
);

pub(super) const AVERAGE: Class = class(
    "a result that its parts do not make",
    ACCURACY,
    |specimen, random| {
        let openers = ["Accuracy: mean = ", "mAP=", "%, accuracy="];
        let opener = random.pick(&openers);
        let path = any_text(specimen, random, opener)?;
        // Some scripts print a figure with three decimals and elsewhere with five.
        let table = specimen.text(&path).contains("Average Precision");
        (*opener != openers[1] || table).then_some(())?;
        let factor = random.between(1.004, 1.02);
        number(specimen, path, opener, |old| format!("{:.5}", old * factor))
    },
);

pub(super) const HASH: Class = class(
    "the hash of another accuracy log",
    &["accuracy-hash"],
    |specimen, random| {
        let path = specimen.any_file(random, |path| path.ends_with("accuracy.txt"))?;
        let log = path.replace("accuracy.txt", "mlperf_log_accuracy.json");
        let uncut = specimen.files().contains(&log) && specimen.read(&log).len() < 4096;
        let text = specimen.text(&path);
        let (_, hash) = text.split_once("hash=").filter(|_| uncut)?;
        let hash = hash.trim().to_owned();
        let other: String = hash.chars().rev().collect();
        changed("another hash", specimen, path, |text| text.replace(&hash, &other))
    },
);
