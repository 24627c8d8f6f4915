//! The rows of a comparison that have a benchmark, scenario, mode, power and length in common: a forest plot and its table.

use maud::{Markup, html};
use regatta_types::RunId;

use crate::{
    forest_plot::{ForestPlot, ForestRow},
    outside_text::{NAME, SENTENCE, shown},
};
use regatta_lab_views::{
    comparisons::{ComparisonRow, ComparisonVerdict},
    wording::{self, comparison_interval},
};

/// The number of rows that are drawn and listed. A fleet has more; then the conspicuous ones are shown.
const MAX_ROWS: usize = 40;
/// The number of rows up to which the pairs of each are listed.
const MAX_ROWS_WITH_PAIRS: usize = 3;
/// The number of pairs that are listed.
const MAX_PAIRS: usize = 30;

/// Returns the class of a verdict's badge.
pub(super) const fn class(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Better => "good",
        ComparisonVerdict::Worse => "bad",
        ComparisonVerdict::Same => "plain",
        ComparisonVerdict::Undecided => "warn",
    }
}

/// Renders the rows of one combination.
pub(super) fn render(rows: &[ComparisonRow], is_different_only: bool) -> Markup {
    let Some(first) = rows.first() else {
        return Markup::default();
    };
    let combination = &first.combination;
    let title = combination.short_text();
    let listed = listed(rows, is_different_only);
    html! {
        section {
            h2 { (shown(&title, SENTENCE)) }
            p .note { "Figure: " (shown(&combination.figure, NAME)) " in " (shown(&combination.unit, NAME)) "; " (first.better) " is better." }
            @if listed.is_empty() {
                p { "Nothing is better or worse." }
            } @else {
                (plot(&listed, &title).render())
                p .note { "Point: median of B / A over the pairs. Line: its 95 % interval. Band: the A/A floor, by how much the device differs from itself." }
                (table(&listed, &title))
                @if listed.iter().any(|row| is_one_run_each(row)) {
                    p .note {
                        @if !listed.iter().all(|row| is_one_run_each(row)) { "For rows with one run on each side, a" } @else { "A" }
                        " ratio of two single runs says nothing about the next run: repeat both sides, interleaved."
                    }
                }
            }
            @if listed.len() < rows.len() {
                p .note { (rows.len() - listed.len()) " of " (rows.len()) " rows are not shown; the command below prints them." }
            }
            @if rows.len() <= MAX_ROWS_WITH_PAIRS { @for row in &listed { (pairs(row)) } }
        }
    }
}

/// Returns whether a row compares two single runs.
const fn is_one_run_each(row: &ComparisonRow) -> bool {
    row.runs_a == 1 && row.runs_b == 1
}

/// Selects the rows to show: that of all devices, then the worst ones first where there are too many.
fn listed(rows: &[ComparisonRow], is_different_only: bool) -> Vec<&ComparisonRow> {
    // A report of several devices ends with the row of all of them.
    let (joint, single) = match rows {
        [single @ .., joint] if single.len() > 1 => (Some(joint), single),
        all => (None, all),
    };
    let is_different =
        |row: &ComparisonRow| matches!(row.verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse);
    let is_listed = |row: &&ComparisonRow| !is_different_only || is_different(row);
    let mut listed: Vec<&ComparisonRow> = single.iter().filter(is_listed).collect();
    if listed.len() >= MAX_ROWS {
        listed.sort_by_key(|row| match row.verdict {
            ComparisonVerdict::Worse => 0,
            ComparisonVerdict::Better => 1,
            ComparisonVerdict::Undecided => 2,
            ComparisonVerdict::Same => 3,
        });
        listed.truncate(MAX_ROWS - 1);
    }
    listed.splice(0..0, joint.filter(is_listed));
    listed
}

fn plot(rows: &[&ComparisonRow], title: &str) -> ForestPlot {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    // A row without pairs has no ratio.
    let drawn = rows.iter().filter(|row| row.ratio.is_finite());
    ForestPlot {
        title: format!("Difference of B from A, {}", shown(title, SENTENCE)),
        axis: format!(
            "difference of B from A in %; {} is better",
            rows.first().map_or("", |row| row.better)
        ),
        rows: drawn
            .map(|row| ForestRow {
                name: row.device.clone(),
                percent: percent(row.ratio),
                interval: row.interval.map(|ends| ends.map(percent)),
                floor: row.floor * 100.0,
                verdict: row.verdict.as_str(),
                class: match row.verdict {
                    ComparisonVerdict::Better => "f-better",
                    ComparisonVerdict::Worse => "f-worse",
                    ComparisonVerdict::Same => "f-same",
                    ComparisonVerdict::Undecided => "f-unsure",
                },
            })
            .collect(),
    }
}

fn table(rows: &[&ComparisonRow], title: &str) -> Markup {
    let titles = [
        "Device",
        "Runs of A, B",
        "Pairs",
        "B / A",
        "95 % interval",
        "A/A floor",
        "Verdict on B",
    ];
    html! {
        table .compared role="table" aria-label={ "Comparison, " (shown(title, SENTENCE)) } {
            thead role="rowgroup" { tr role="row" { @for title in titles { th role="columnheader" scope="col" { (title) } } } }
            tbody role="rowgroup" {
                @for row in rows {
                    tr role="row" {
                        th role="rowheader" scope="row" data-title="Device" { (shown(&row.device, NAME)) }
                        td .number role="cell" data-title="Runs of A, B" { (row.runs_a) ", " (row.runs_b) }
                        td .number role="cell" data-title="Pairs" { (row.pairs) }
                        td .number role="cell" data-title="B / A" { @if row.ratio.is_finite() { (format!("{:.3}", row.ratio)) } @else { "none" } }
                        td .number role="cell" data-title="95 % interval" { (comparison_interval(row)) }
                        td .number role="cell" data-title="A/A floor" {
                            (format!("{:.1} %", row.floor * 100.0))
                            @if !row.is_floor_measured { " assumed" }
                        }
                        td role="cell" data-title="Verdict on B" { span class={ "badge v-" (class(row.verdict)) } { (row.verdict_text) } }
                    }
                }
            }
        }
    }
}

/// Returns the runs of each pair.
fn pairs(row: &ComparisonRow) -> Markup {
    let run = |run: RunId| html! { a href={ "/run/" (run) } { (wording::short_id(run)) } };
    html! {
        @if !row.compared_runs.is_empty() {
            details {
                summary { "Pairs of " (shown(&row.device, NAME)) }
                ul .plain { @for [a, b] in row.compared_runs.iter().take(MAX_PAIRS) { li { (run(*a)) " and " (run(*b)) } } }
                @if row.compared_runs.len() > MAX_PAIRS { p .note { (row.compared_runs.len() - MAX_PAIRS) " more are not listed." } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_lab_views::comparisons::{AS_FOUND, Combination, FULL_LENGTH, FloorOrigin};

    fn row(device: &str, verdict: ComparisonVerdict, ratio: f64) -> ComparisonRow {
        ComparisonRow {
            device: device.to_owned(),
            combination: Combination {
                benchmark: "resnet50".to_owned(),
                scenario: "SingleStream".to_owned(),
                mode: "PerformanceOnly".to_owned(),
                power: AS_FOUND.to_owned(),
                length: FULL_LENGTH.to_owned(),
                figure: "estimate".to_owned(),
                unit: "ns".to_owned(),
            },
            better: "smaller",
            runs_a: 6,
            runs_b: 6,
            median_a: 1.0,
            median_b: 1.0,
            pairs: 6,
            ratio,
            interval: Some([ratio - 0.01, ratio + 0.01]),
            bootstrap_interval: None,
            floor: 0.01,
            floor_pairs: 6,
            is_floor_measured: true,
            floor_origin: FloorOrigin::NoDrift,
            verdict,
            more_pairs: None,
            verdict_text: verdict.as_str().to_owned(),
            is_separated: false,
            compared_runs: Vec::new(),
        }
    }

    #[test]
    fn a_fleet_shows_all_together_and_then_what_is_conspicuous() {
        let mut rows: Vec<ComparisonRow> = (0..99)
            .map(|number| row(&format!("boat-{number}"), ComparisonVerdict::Same, 1.0))
            .collect();
        rows[70].verdict = ComparisonVerdict::Worse;
        rows[80].verdict = ComparisonVerdict::Better;
        rows.push(row("all 99 devices", ComparisonVerdict::Same, 1.0));
        let names = |is_different_only| -> Vec<String> {
            let listed = listed(&rows, is_different_only).into_iter();
            listed.map(|row| row.device.clone()).collect()
        };
        let shown = names(false);
        assert_eq!(
            (shown.len(), &shown[..3]),
            (
                MAX_ROWS,
                &["all 99 devices", "boat-70", "boat-80"].map(str::to_owned)[..]
            )
        );
        assert_eq!(names(true), ["boat-70", "boat-80"]);
        let page = render(&rows, false).into_string();
        assert!(
            page.contains("60 of 100 rows are not shown") && page.len() < 45_000,
            "{}",
            page.len()
        );
    }

    #[test]
    fn a_row_without_pairs_is_listed_and_not_drawn() {
        let without = ComparisonRow {
            interval: None,
            ..row("boat", ComparisonVerdict::Undecided, f64::NAN)
        };
        let page = render(&[without], false).into_string();
        assert!(
            page.contains(">none<") && !page.contains("<svg") && !page.contains("NaN"),
            "{page}"
        );
    }
}
