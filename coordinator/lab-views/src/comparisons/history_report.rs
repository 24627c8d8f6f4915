//! The documents of devices' histories with their change points. They are also their JSON form.

use regatta_types::RunId;
use serde::Serialize;

use super::{Combination, ComparisonVerdict, ExcludedRuns};

/// Histories of devices.
#[derive(Debug, Serialize)]
pub struct HistoryReport {
    /// One for each device and combination.
    pub histories: Vec<History>,
    /// The runs that do not count.
    pub excluded: Vec<ExcludedRuns>,
}

/// The figures of one combination on one device in the order of time.
#[derive(Debug, Serialize)]
pub struct History {
    pub device: String,
    #[serde(flatten)]
    pub combination: Combination,
    /// The better figures: `smaller` or `larger`.
    pub better: &'static str,
    pub points: Vec<HistoryPoint>,
    /// The median since the last change point.
    pub median: f64,
    /// The median absolute deviation from it.
    pub mad: f64,
    /// The number of runs since the last change point.
    pub level_runs: usize,
    /// `None` for a history that is too short for change points.
    pub changes: Option<Vec<HistoryChange>>,
}

/// A run of a history.
#[derive(Debug, Serialize)]
pub struct HistoryPoint {
    pub run: RunId,
    /// The time when LoadGen started, RFC 3339 UTC.
    pub started: String,
    pub value: f64,
}

/// A change of level.
#[derive(Debug, Serialize)]
pub struct HistoryChange {
    /// The first run of the new level.
    pub run: RunId,
    pub started: String,
    pub mean_before: f64,
    pub mean_after: f64,
    pub p_value: f64,
    /// `better` or `worse`.
    pub verdict: ComparisonVerdict,
    /// The differences between that run and the one before it, in words.
    pub differences: Vec<String>,
}
