//! The table of a comparison, its notes, and the documents that hold it.

use comfy_table::ContentArrangement;
use regatta_text::escape;
use regatta_types::RunId;
use serde::Serialize;

use super::{Combination, cell, combination::FULL_LENGTH, fits, keep_whole, right, table};

/// A comparison of two sides.
#[derive(Debug, Serialize)]
pub(crate) struct ComparisonReport {
    /// The base.
    pub(crate) a: ComparedSide,
    /// The side that is compared with it.
    pub(crate) b: ComparedSide,
    /// A row for each device and combination, and for all devices together.
    pub(crate) rows: Vec<ComparisonRow>,
    /// The combinations that only one side has, in words.
    pub(crate) not_compared: Vec<String>,
}

/// One side of a comparison.
#[derive(Debug, Serialize)]
pub(crate) struct ComparedSide {
    /// The words that selected it.
    pub(crate) selection: String,
    /// The number of runs that count.
    pub(crate) runs: usize,
    /// The runs that do not count.
    pub(crate) excluded: Vec<ExcludedRuns>,
}

/// Runs that do not count in a comparison.
#[derive(Debug, Serialize)]
pub(crate) struct ExcludedRuns {
    /// The reason.
    pub(crate) reason: String,
    /// The number of runs.
    pub(crate) runs: usize,
}

/// The comparison of one combination on one device, or on several.
#[derive(Debug, Serialize)]
pub(crate) struct ComparisonRow {
    /// The device's name, or words for several.
    pub(crate) device: String,
    #[serde(flatten)]
    pub(crate) combination: Combination,
    /// The better figures: `smaller` or `larger`.
    pub(crate) better: &'static str,
    pub(crate) runs_a: usize,
    pub(crate) runs_b: usize,
    pub(crate) pairs: usize,
    /// The median of B's figure divided by A's.
    pub(crate) ratio: f64,
    /// The 95 % interval that decides.
    pub(crate) interval: Option<[f64; 2]>,
    /// The bootstrap's 95 % interval.
    pub(crate) bootstrap_interval: Option<[f64; 2]>,
    /// The A/A floor as a share.
    pub(crate) floor: f64,
    /// The number of the device's A/A pairs.
    pub(crate) floor_pairs: usize,
    /// Whether these are enough to measure the floor.
    #[serde(rename = "floor_measured")]
    pub(crate) is_floor_measured: bool,
    /// The origin of the floor.
    pub(crate) floor_origin: FloorOrigin,
    /// `better`, `worse`, `same` or `cannot tell`.
    pub(crate) verdict: &'static str,
    /// The number of further pairs that would decide, or are needed at least.
    pub(crate) more_pairs: Option<usize>,
    /// The verdict as text.
    pub(crate) words: String,
    /// Whether all of one side ran before the other.
    #[serde(rename = "separated")]
    pub(crate) is_separated: bool,
    /// The runs of each pair: of A, of B.
    pub(crate) compared_runs: Vec<[RunId; 2]>,
}

/// The origin of a floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FloorOrigin {
    /// The least floor, because there are too few A/A pairs.
    Assumed,
    /// The least floor: the A/A pairs show no drift beyond their noise.
    NoDrift,
    /// The drift in A/A pairs of the compared runs.
    DriftOfComparedRuns,
    /// The drift in A/A pairs of the device, also of runs that are not compared.
    DriftOfOtherRuns,
    /// The user requested it.
    Requested,
}

/// Formats a comparison for people: a line for each row, or two on a narrow terminal.
pub(crate) fn comparisons(report: &ComparisonReport) -> String {
    let wide = a_line_each(&report.rows);
    let table = if fits(&wide) {
        wide
    } else {
        two_lines_each(&report.rows)
    };
    let mut parts = vec![table, String::new()];
    parts.extend(comparison_notes(report));
    parts.join("\n")
}

fn a_line_each(rows: &[ComparisonRow]) -> String {
    let mut table = table([
        "device",
        "benchmark",
        "pairs",
        "B / A",
        "95 % interval",
        "floor",
        "verdict on B",
    ]);
    table.set_content_arrangement(ContentArrangement::Disabled);
    for row in rows {
        table.add_row([
            cell(&row.device),
            cell(row.combination.short_text()),
            right(row.pairs),
            right(format!("{:.3}", row.ratio)),
            cell(comparison_interval(row)),
            right(floor(row)),
            cell(&row.words),
        ]);
    }
    table.trim_fmt()
}

fn two_lines_each(rows: &[ComparisonRow]) -> String {
    let mut table = table([
        "device and benchmark",
        "B / A, 95 %",
        "pairs, floor",
        "verdict on B",
    ]);
    for row in rows {
        table.add_row([
            format!(
                "{}\n{}",
                escape(&row.device),
                escape(&row.combination.short_text())
            ),
            format!("{:.3}\n{}", row.ratio, comparison_interval(row)),
            format!("{}\n{}", row.pairs, floor(row)),
            row.words.clone(),
        ]);
    }
    keep_whole(&mut table, 1);
    keep_whole(&mut table, 2);
    table.trim_fmt()
}

fn floor(row: &ComparisonRow) -> String {
    format!("{:.1} %", row.floor * 100.0)
}

/// Formats the interval of a row.
pub(crate) fn comparison_interval(row: &ComparisonRow) -> String {
    row.interval.map_or_else(
        || "none".to_owned(),
        |[low, high]| format!("{low:.3} to {high:.3}"),
    )
}

/// Returns the notes beside the table, a line each.
pub(crate) fn comparison_notes(report: &ComparisonReport) -> Vec<String> {
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
            regatta_compare::LEAST_PAIRS
        ));
    }
    notes.extend(report.rows.iter().filter_map(drift_note));
    if concerned(|row| row.combination.length != FULL_LENGTH) {
        notes.push("note: short runs are no MLPerf results".to_owned());
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
pub(crate) fn excluded(side: &ComparedSide) -> String {
    if side.excluded.is_empty() {
        return String::new();
    }
    format!(" (left out: {})", excluded_runs(&side.excluded))
}

/// Formats a number of runs.
pub(crate) fn count_of_runs(runs: usize) -> String {
    match runs {
        1 => "1 run".to_owned(),
        more => format!("{more} runs"),
    }
}

/// Formats the numbers of runs that do not count, by reason.
pub(crate) fn excluded_runs(excluded: &[ExcludedRuns]) -> String {
    let reasons = excluded
        .iter()
        .map(|excluded| format!("{} {}", excluded.runs, excluded.reason));
    reasons.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::combination::AS_FOUND;

    fn row(device: &str, ratio: f64, words: &str) -> ComparisonRow {
        ComparisonRow {
            device: device.to_owned(),
            combination: Combination {
                benchmark: "resnet50".to_owned(),
                scenario: "SingleStream".to_owned(),
                mode: "PerformanceOnly".to_owned(),
                power: AS_FOUND.to_owned(),
                length: FULL_LENGTH.to_owned(),
                figure: String::new(),
                unit: "ns".to_owned(),
            },
            better: "smaller",
            runs_a: 12,
            runs_b: 12,
            pairs: 12,
            ratio,
            interval: Some([ratio - 0.004, ratio + 0.006]),
            bootstrap_interval: None,
            floor: 0.01,
            floor_pairs: 0,
            is_floor_measured: true,
            floor_origin: FloorOrigin::NoDrift,
            verdict: "",
            more_pairs: None,
            words: words.to_owned(),
            is_separated: false,
            compared_runs: Vec::new(),
        }
    }

    #[test]
    fn rows_fit_80_columns_in_two_lines() {
        let rows = [
            row("orin-1", 1.031, "worse by 3.1 %"),
            row("orin-nano-2", 1.012, "cannot tell: 12 more pairs would"),
        ];
        let printed = two_lines_each(&rows);
        // The verdict wraps: its longest part has 21 columns.
        let before_verdict = printed.find("verdict on B").unwrap();
        assert!(before_verdict + 21 <= 80, "{before_verdict}:\n{printed}");
        let lines: Vec<&str> = printed.lines().map(str::trim).collect();
        assert!(
            lines[2].starts_with("orin-1") && lines[2].ends_with("worse by 3.1 %"),
            "{printed}"
        );
        assert!(
            lines[3].starts_with("resnet50 SingleStream   1.027 to 1.037"),
            "{printed}"
        );
    }
}
