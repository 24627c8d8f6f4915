//! One history: its runs in the order of time as a plot with the change points, a table of the levels between them, and a table of the newest
//! runs.

use maud::{Markup, html};
use regatta_text::significant;

use crate::{
    outside_text::{NAME, SENTENCE, shown},
    plot::{Axis, Line, Mark, Plot, Scale},
};
use regatta_lab_views::{
    comparisons::{ComparisonVerdict, History, HistoryChange, HistoryPoint},
    wording::{self, figure::value},
};
use regatta_types::documents::Metric;

/// The number of the newest runs that are drawn, and of those that are listed.
const MAX_DRAWN: usize = 300;
const MAX_LISTED: usize = 50;
/// The number of runs up to which each has a dot.
const MAX_DOTS: usize = 80;
/// The number of levels and of differences that are listed.
const MAX_LEVELS: usize = 20;
const MAX_DIFFERENCES: usize = 12;

/// Runs between two change points.
struct Level<'a> {
    /// The numbers of its first run, from 0, and of the run after its last.
    runs: [usize; 2],
    mean: f64,
    /// The change with which it began.
    change: Option<&'a HistoryChange>,
}

/// Formats a figure of a history.
pub(super) fn figure(history: &History, figure: f64) -> String {
    value(&Metric {
        name: String::new(),
        value: figure,
        unit: history.combination.unit.clone(),
    })
}

/// Formats the median absolute deviation as a share of the median.
pub(super) fn deviation(history: &History) -> String {
    format!("{:.2} %", history.mad / history.median * 100.0)
}

pub(super) fn render(history: &History) -> Markup {
    let title = format!("{}, {}", history.device, history.combination.short_text());
    let title = shown(&title, SENTENCE);
    let levels = levels(history);
    html! {
        section {
            h2 { (title) }
            p .note {
                (shown(&history.combination.figure, NAME)) "; " (history.better) " is better. Median "
                (figure(history, history.median)) ", deviation " (deviation(history)) " of the "
                @if history.level_runs == 1 { "last run" } @else { "last " (history.level_runs) " runs" } "."
            }
            (plot(history, &levels, &title).render())
            (level_table(history, &levels, &title))
            (run_table(history, &title))
        }
    }
}

/// Splits the runs at the change points.
fn levels(history: &History) -> Vec<Level<'_>> {
    let changes = history.changes.as_deref().unwrap_or_default();
    let places: Vec<(usize, &HistoryChange)> = changes
        .iter()
        .filter_map(|change| {
            Some((
                history.points.iter().position(|point| point.run == change.run)?,
                change,
            ))
        })
        .collect();
    let starts =
        std::iter::once((0, None)).chain(places.iter().map(|(place, change)| (*place, Some(*change))));
    let ends = places
        .iter()
        .map(|(place, _)| *place)
        .chain([history.points.len()]);
    starts
        .zip(ends)
        .map(|((from, change), to)| Level {
            runs: [from, to],
            mean: mean(history.points.get(from..to).unwrap_or_default()),
            change,
        })
        .collect()
}

fn mean(points: &[HistoryPoint]) -> f64 {
    points.iter().map(|point| point.value).sum::<f64>() / points.len().max(1) as f64
}

fn plot(history: &History, levels: &[Level<'_>], title: &str) -> Plot {
    let (scale, unit) = axis_unit(&history.combination.unit);
    let first = history.points.len().saturating_sub(MAX_DRAWN);
    let points: Vec<(f64, Option<f64>)> = history
        .points
        .iter()
        .enumerate()
        .skip(first)
        .map(|(number, point)| (number as f64 + 1.0, Some(point.value / scale)))
        .collect();
    let values = || points.iter().filter_map(|(_, value)| *value);
    let (low, high) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(f64::NEG_INFINITY, f64::max),
    );
    // Below is room for the names of changes.
    let space = (high - low) * 0.08;
    let mut steps = Vec::new();
    for level in levels.iter().filter(|level| level.runs[1] > first) {
        let [from, to] = [level.runs[0].max(first) + 1, level.runs[1]].map(|number| number as f64);
        steps.extend([
            (from, Some(level.mean / scale)),
            (to, Some(level.mean / scale)),
            (to, None),
        ]);
    }
    let changes = levels
        .iter()
        .enumerate()
        .filter(|(_, level)| level.change.is_some() && level.runs[0] >= first);
    Plot {
        title: format!("Figure of each run, {title}"),
        x: Axis::covering(
            Scale::Linear,
            [first as f64 + 1.0, history.points.len() as f64],
            "runs in the order of time",
        ),
        y: Axis::covering(Scale::Linear, [low - 2.5 * space, high + space], unit),
        shaded: Vec::new(),
        lines: vec![
            Line {
                number: 0,
                has_dots: points.len() <= MAX_DOTS,
                points,
            },
            Line {
                number: 1,
                has_dots: false,
                points: steps,
            },
        ],
        marks: changes
            .map(|(number, level)| Mark::Vertical(level.runs[0] as f64 + 1.0, format!("change {number}")))
            .collect(),
    }
}

/// Returns the axis's quantity, and the divisor of its values.
fn axis_unit(unit: &str) -> (f64, String) {
    match unit {
        "ns" => (1e6, "ms".to_owned()),
        unit => (1.0, unit.to_owned()),
    }
}

fn level_table(history: &History, levels: &[Level<'_>], title: &str) -> Markup {
    let titles = ["Level", "From", "Runs", "Mean", "Change", "What changed with it"];
    let skipped = levels.len().saturating_sub(MAX_LEVELS);
    html! {
        table .levels role="table" aria-label={ "Levels, " (title) } {
            thead role="rowgroup" { tr role="row" { @for title in titles { th role="columnheader" scope="col" { (title) } } } }
            tbody role="rowgroup" {
                @for (number, level) in levels.iter().enumerate().skip(skipped) {
                    tr role="row" {
                        th role="rowheader" scope="row" data-title="Level" {
                            @if number == 0 { "first" } @else { "after change " (number) }
                        }
                        td role="cell" data-title="From" {
                            @if let Some(point) = history.points.get(level.runs[0]) {
                                a href={ "/run/" (point.run) } { (wording::time(&point.started)) }
                            }
                        }
                        td .number role="cell" data-title="Runs" { (level.runs[1] - level.runs[0]) }
                        td .number role="cell" data-title="Mean" { (figure(history, level.mean)) }
                        td role="cell" data-title="Change" { @if let Some(change) = level.change { (change_badge(change)) } }
                        td role="cell" data-title="What changed with it" { @if let Some(change) = level.change { (differences(change)) } }
                    }
                }
            }
        }
        @if skipped > 0 { p .note { (skipped) " older levels are not listed." } }
        @if history.changes.is_none() { p .note { "Too few runs to search for changes." } }
    }
}

fn change_badge(change: &HistoryChange) -> Markup {
    let percent = (change.mean_after / change.mean_before - 1.0) * 100.0;
    let is_worse = change.verdict == ComparisonVerdict::Worse;
    let class = if is_worse { "bad" } else { "good" };
    html! { span class={ "badge v-" (class) } { (change.verdict.as_str()) " " (format!("{percent:+.1} %")) } }
}

fn differences(change: &HistoryChange) -> Markup {
    html! {
        @if change.differences.is_empty() {
            "nothing that is recorded"
        } @else {
            ul .notes { @for what in change.differences.iter().take(MAX_DIFFERENCES) { li { (shown(what, SENTENCE)) } } }
        }
    }
}

fn run_table(history: &History, title: &str) -> Markup {
    let newest = history.points.iter().rev().take(MAX_LISTED);
    html! {
        details {
            summary { "Runs, the newest first" }
            table .small role="table" aria-label={ "Runs, " (title) } {
                thead role="rowgroup" { tr role="row" {
                    th role="columnheader" scope="col" { "Started (UTC)" }
                    th role="columnheader" scope="col" { "Run" }
                    th .number role="columnheader" scope="col" { (figure_heading(history)) }
                } }
                tbody role="rowgroup" {
                    @for point in newest {
                        tr role="row" {
                            th role="rowheader" scope="row" data-title="Started (UTC)" { (wording::time(&point.started)) }
                            td role="cell" data-title="Run" { a href={ "/run/" (point.run) } { (wording::short_id(point.run)) } }
                            td .number role="cell" data-title="Figure" { (significant(point.value / axis_unit(&history.combination.unit).0, 5)) }
                        }
                    }
                }
            }
            @if history.points.len() > MAX_LISTED { p .note { (history.points.len() - MAX_LISTED) " older runs are not listed; the JSON document has them." } }
        }
    }
}

fn figure_heading(history: &History) -> String {
    format!(
        "Figure in {}",
        shown(&axis_unit(&history.combination.unit).1, NAME)
    )
}
