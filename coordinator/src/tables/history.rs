//! The table of devices' histories with their change points.

use regatta_text::escape;

use super::{plain, sparkline::sparkline};
use regatta_lab_views::{
    comparisons::{History, HistoryChange, HistoryReport},
    wording::{self, figure},
};
use regatta_types::documents::Metric;

/// The figures that a line shows as bars.
const SHOWN_FIGURES: usize = 12;

/// Formats histories for people: a line each, and every change point with its changes.
pub(crate) fn histories(report: &HistoryReport, least_runs: usize) -> String {
    let lines = report.histories.iter().map(|history| {
        let changes = match &history.changes {
            None => format!("from {least_runs} runs on"),
            Some(changes) => changes.len().to_string(),
        };
        let values: Vec<f64> = history.points.iter().map(|point| point.value).collect();
        [
            history.device.clone(),
            history.combination.short_text(),
            history.points.len().to_string(),
            sparkline(&values, SHOWN_FIGURES),
            value(history, history.median),
            format!("{:.2} %", history.mad / history.median * 100.0),
            changes,
        ]
    });
    let headline = [
        "device",
        "benchmark",
        "runs",
        "newest",
        "median",
        "MAD",
        "changes",
    ];
    let mut parts = vec![plain(headline, lines)];
    for history in &report.histories {
        let changes = history.changes.iter().flatten();
        parts.extend(changes.map(|change| change_text(history, change)));
    }
    if !report.excluded.is_empty() {
        let excluded = wording::excluded_runs(&report.excluded);
        parts.push(format!("left out: {excluded}"));
    }
    parts.join("\n\n")
}

fn value(history: &History, value: f64) -> String {
    figure::value(&Metric {
        name: history.combination.figure.clone(),
        value,
        unit: history.combination.unit.clone(),
    })
}

fn change_text(history: &History, change: &HistoryChange) -> String {
    let percent = (change.mean_after / change.mean_before - 1.0) * 100.0;
    let differences = if change.differences.is_empty() {
        "  nothing that is recorded changed with it".to_owned()
    } else {
        let lines = change
            .differences
            .iter()
            .map(|what| format!("  {}", escape(what)));
        lines.collect::<Vec<_>>().join("\n")
    };
    format!(
        "{} {}, {}: {} ({percent:+.1} %: {} to {}), run {}\n{differences}",
        escape(&history.device),
        history.combination.short_text(),
        wording::time(&change.started),
        change.verdict.as_str(),
        value(history, change.mean_before),
        value(history, change.mean_after),
        wording::short_id(change.run),
    )
}
