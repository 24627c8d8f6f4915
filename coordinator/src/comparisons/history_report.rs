//! The documents of devices' histories with their change points. They are also their JSON form.

use regatta_types::RunId;
use serde::Serialize;

use super::{Combination, ExcludedRuns};

/// Histories of devices.
#[derive(Debug, Serialize)]
pub(crate) struct HistoryReport {
    /// One for each device and combination.
    pub(crate) histories: Vec<History>,
    /// The runs that do not count.
    pub(crate) excluded: Vec<ExcludedRuns>,
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
