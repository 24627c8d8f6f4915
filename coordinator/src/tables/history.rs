//! The table of devices' histories with their change points, and the documents that hold them.

use regatta_text::escape;
use regatta_types::RunId;
use serde::Serialize;

use super::{Combination, figure, plain, sparkline::sparkline, words};
use crate::store::Metric;

/// Histories of devices.
#[derive(Debug, Serialize)]
pub(crate) struct HistoryReport {
    /// One for each device and combination.
    pub(crate) histories: Vec<History>,
    /// The runs that do not count.
    pub(crate) excluded: Vec<super::ExcludedRuns>,
}

/// The figures of one combination on one device in the order of time.
#[derive(Debug, Serialize)]
pub(crate) struct History {
    pub(crate) device: String,
    #[serde(flatten)]
    pub(crate) combination: Combination,
    /// The better figures: `smaller` or `larger`.
    pub(crate) better: &'static str,
    pub(crate) points: Vec<HistoryPoint>,
    /// The median since the last change point.
    pub(crate) median: f64,
    /// The median absolute deviation from it.
    pub(crate) mad: f64,
    /// The number of runs since the last change point.
    pub(crate) level_runs: usize,
    /// `None` for a history that is too short for change points.
    pub(crate) changes: Option<Vec<HistoryChange>>,
}

/// A run of a history.
#[derive(Debug, Serialize)]
pub(crate) struct HistoryPoint {
    pub(crate) run: RunId,
    /// The time when LoadGen started, RFC 3339 UTC.
    pub(crate) started: String,
    pub(crate) value: f64,
}

/// A change of level.
#[derive(Debug, Serialize)]
pub(crate) struct HistoryChange {
    /// The first run of the new level.
    pub(crate) run: RunId,
    pub(crate) started: String,
    pub(crate) mean_before: f64,
    pub(crate) mean_after: f64,
    pub(crate) p_value: f64,
    /// `better` or `worse`.
    pub(crate) verdict: &'static str,
    /// The differences between that run and the one before it, in words.
    pub(crate) differences: Vec<String>,
}

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
        let excluded = super::excluded_runs(&report.excluded);
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
        words::time(&change.started),
        change.verdict,
        value(history, change.mean_before),
        value(history, change.mean_after),
        super::runs::short_id(change.run),
    )
}
