//! A comparison in sentences: its interval, its notes, and the runs that do not count.

use std::collections::BTreeSet;

use regatta_text::escape;

use crate::comparisons::{
    ComparedSide, ComparisonReport, ComparisonRow, ExcludedRuns, FULL_LENGTH, FloorOrigin, SideDifference,
};

/// Formats the median figures of a row's sides: `4907 samples/s → 7381 samples/s`.
pub fn comparison_medians(row: &ComparisonRow) -> String {
    let [a, b] =
        [row.median_a, row.median_b].map(|median| regatta_text::figure(median, &row.combination.unit));
    format!("{a} → {b}")
}

/// Formats a difference between the sides.
fn difference(found: &SideDifference) -> String {
    /// The values that are listed.
    const MAX_VALUES: usize = 3;
    let values = |values: &BTreeSet<String>| match values.len() {
        0 => "not set".to_owned(),
        1..=MAX_VALUES => escape(&values.iter().cloned().collect::<Vec<_>>().join(", ")).into_owned(),
        more => format!("{more} values"),
    };
    format!(
        "differs: {}: A {}, B {}",
        escape(&found.name),
        values(&found.a),
        values(&found.b)
    )
}

/// Names the option that includes runs which were left out, if there is one.
pub fn include_hint<'a>(excluded: impl IntoIterator<Item = &'a ExcludedRuns>) -> Option<String> {
    let reasons: BTreeSet<&str> = excluded
        .into_iter()
        .map(|excluded| excluded.reason.as_str())
        .collect();
    let words: Vec<&str> = ["short", "simulated"]
        .into_iter()
        .filter(|word| reasons.contains(word))
        .collect();
    (!words.is_empty()).then(|| {
        format!(
            "`--include {}` includes {} runs",
            words.join(","),
            words.join(" and ")
        )
    })
}

/// Formats the interval of a row.
pub fn comparison_interval(row: &ComparisonRow) -> String {
    row.interval.map_or_else(
        || "none".to_owned(),
        |[low, high]| format!("{low:.3} to {high:.3}"),
    )
}

/// Returns the notes beside the table, a line each.
pub fn comparison_notes(report: &ComparisonReport) -> Vec<String> {
    let mut notes: Vec<String> = [("A", &report.a), ("B", &report.b)]
        .into_iter()
        .map(|(name, side)| {
            format!(
                "{name}: {}, {}{}",
                side.selection,
                count_of_runs(side.runs),
                excluded(side)
            )
        })
        .collect();
    notes.extend(report.differences.iter().map(difference));
    notes.extend(
        report
            .not_compared
            .iter()
            .map(|what| format!("not compared: {what}")),
    );
    let concerned = |is: fn(&ComparisonRow) -> bool| report.rows.iter().any(is);
    if concerned(|row| row.is_separated) {
        notes.push(
            "note: the sides ran one after the other, so that a drift of the device counts as a difference; interleave their runs"
                .to_owned(),
        );
    }
    if concerned(|row| !row.is_floor_measured) {
        notes.push(format!(
            "note: a floor without {} pairs of runs of equal spec is assumed, not measured",
            regatta_compare::MIN_PAIRS
        ));
    }
    notes.extend(report.rows.iter().filter_map(drift_note));
    if concerned(|row| row.combination.length != FULL_LENGTH) {
        notes.push("note: short runs are not MLPerf results".to_owned());
    }
    notes
}

/// Explains the floor of a row that is a measured drift.
fn drift_note(row: &ComparisonRow) -> Option<String> {
    let of = match row.floor_origin {
        FloorOrigin::DriftOfComparedRuns => "of the compared runs",
        FloorOrigin::DriftOfOtherRuns => "of the device's runs, also with other settings",
        FloorOrigin::Assumed | FloorOrigin::NoDrift | FloorOrigin::Requested => return None,
    };
    Some(format!(
        "note: the floor of {} {} is the drift from run to run in {} pairs of runs of equal spec, {of}",
        escape(&row.device),
        escape(&row.combination.short_text()),
        row.floor_pairs
    ))
}

/// Formats the runs that do not count.
pub fn excluded(side: &ComparedSide) -> String {
    if side.excluded.is_empty() {
        return String::new();
    }
    format!(" (left out: {})", excluded_runs(&side.excluded))
}

/// Formats a number of runs.
pub fn count_of_runs(runs: usize) -> String {
    match runs {
        1 => "1 run".to_owned(),
        more => format!("{more} runs"),
    }
}

/// Formats the numbers of runs that do not count, by reason.
pub fn excluded_runs(excluded: &[ExcludedRuns]) -> String {
    let reasons = excluded
        .iter()
        .map(|excluded| format!("{} {}", excluded.runs, excluded.reason));
    reasons.collect::<Vec<_>>().join(", ")
}
