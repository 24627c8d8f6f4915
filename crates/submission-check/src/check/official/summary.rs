//! The last lines of an official log: items, counts and summary. The wording is the official one, because scripts search for it.

use std::collections::{BTreeMap, BTreeSet};

use regatta_catalogue::round::Trait;

use super::{Context, Row, Verdict};

/// Returns the last lines of the log.
pub(super) fn lines(
    context: &Context<'_>,
    items: &BTreeMap<String, Option<String>>,
    rows: &[Row],
    verdict: &Verdict,
) -> Vec<String> {
    if let Verdict::Crash(reason) = verdict {
        return vec![format!("(no summary: the official checker ends here, {reason})")];
    }
    let with_results = with_results(items);
    let mut lines = vec!["---".to_owned()];
    for (path, value) in items {
        let value = value.as_ref().filter(|value| !is_zero(value));
        lines.extend(value.map(|value| format!("Results {path} {value}")));
    }
    lines.push("---".to_owned());
    for (path, value) in items {
        if value.is_none() {
            lines.push(format!("NoResults {path}"));
        }
    }
    lines.push("---".to_owned());
    let none = items.len() - with_results;
    if context.checker.has(Trait::ShortSummary) {
        lines.push(format!("Results={with_results}, NoResults={none}"));
    } else {
        let power = rows.iter().filter(|row| row.power).count();
        lines.push(format!(
            "Results={with_results}, NoResults={none}, Power Results={power}"
        ));
        lines.extend(counts(rows));
    }
    let words = if *verdict == Verdict::Accept {
        "looks OK"
    } else {
        "has errors"
    };
    lines.push(format!("SUMMARY: submission {words}"));
    lines
}

/// Counts the items with a result. The official checker does not count a result of 0, but does not list it as missing either.
pub(super) fn with_results(items: &BTreeMap<String, Option<String>>) -> usize {
    items.values().flatten().filter(|value| !is_zero(value)).count()
}

/// Returns whether the printed number is false in Python.
pub(super) fn is_zero(value: &str) -> bool {
    matches!(value, "0.0" | "-0.0" | "0")
}

fn counts(rows: &[Row]) -> Vec<String> {
    const DIVISIONS: [(&str, &str); 3] = [("closed", "Closed"), ("open", "Open"), ("network", "Network")];
    let mut lines = vec!["---".to_owned()];
    let results = |division: &str, power: bool| {
        rows.iter()
            .filter(|row| row.division == division && row.power == power)
            .count()
    };
    for (division, word) in DIVISIONS {
        lines.push(format!(
            "{word} Results={}, {word} Power Results={}",
            results(division, false),
            results(division, true)
        ));
    }
    lines.push("---".to_owned());
    let systems = |division: Option<&str>, power: bool| {
        rows.iter()
            .filter(|row| division.is_none_or(|division| row.division == division))
            .filter(|row| !power || row.power)
            .map(|row| (&row.submitter, &row.system))
            .collect::<BTreeSet<_>>()
            .len()
    };
    lines.push(format!(
        "Systems={}, Power Systems={}",
        systems(None, false),
        systems(None, true)
    ));
    for (division, word) in DIVISIONS {
        lines.push(format!(
            "{word} Systems={}, {word} Power Systems={}",
            systems(Some(division), false),
            systems(Some(division), true)
        ));
    }
    lines
}
