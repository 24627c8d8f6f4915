//! The documents of a comparison. They are also its JSON form.

use regatta_types::RunId;
use serde::Serialize;

use super::Combination;

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
