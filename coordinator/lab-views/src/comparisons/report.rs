//! The documents of a comparison. They are also its JSON form.

use std::collections::BTreeSet;

use regatta_compare::Verdict;
use regatta_types::RunId;
use serde::Serialize;

use super::Combination;

/// A comparison of two sides.
#[derive(Debug, Serialize)]
pub struct ComparisonReport {
    /// The base.
    pub a: ComparedSide,
    pub b: ComparedSide,
    /// A row for each device and combination, and for all devices together.
    pub rows: Vec<ComparisonRow>,
    /// The combinations that only one side has, in words.
    pub not_compared: Vec<String>,
    /// The settings and software in which the sides differ.
    pub differences: Vec<SideDifference>,
}

/// A condition in which the runs of the sides differ.
#[derive(Debug, Serialize)]
pub struct SideDifference {
    pub name: String,
    /// The values in the runs of A; none if no run has the condition.
    pub a: BTreeSet<String>,
    pub b: BTreeSet<String>,
}

/// One side of a comparison.
#[derive(Debug, Serialize)]
pub struct ComparedSide {
    /// The words that selected it.
    pub selection: String,
    /// The number of runs that count.
    pub runs: usize,
    /// The runs that do not count.
    pub excluded: Vec<ExcludedRuns>,
}

/// Runs that do not count in a comparison.
#[derive(Debug, Serialize)]
pub struct ExcludedRuns {
    pub reason: String,
    pub runs: usize,
}

/// The comparison of one combination on one device, or on several.
#[derive(Debug, Serialize)]
pub struct ComparisonRow {
    /// The device's name, or words for several.
    pub device: String,
    #[serde(flatten)]
    pub combination: Combination,
    /// The better figures: `smaller` or `larger`.
    pub better: &'static str,
    pub runs_a: usize,
    pub runs_b: usize,
    /// The median figure of A's runs, in `unit`.
    pub median_a: f64,
    pub median_b: f64,
    pub pairs: usize,
    /// The median of B's figure divided by A's.
    pub ratio: f64,
    /// The 95 % interval that decides.
    pub interval: Option<[f64; 2]>,
    /// The bootstrap's 95 % interval.
    pub bootstrap_interval: Option<[f64; 2]>,
    /// The A/A floor as a share.
    pub floor: f64,
    /// The number of the device's A/A pairs.
    pub floor_pairs: usize,
    /// Whether these are enough to measure the floor.
    #[serde(rename = "floor_measured")]
    pub is_floor_measured: bool,
    pub floor_origin: FloorOrigin,
    /// The verdict on B.
    pub verdict: ComparisonVerdict,
    /// The number of further pairs that would decide, or are needed at least.
    pub more_pairs: Option<usize>,
    /// The verdict as text.
    pub verdict_text: String,
    /// Whether all of one side ran before the other.
    #[serde(rename = "separated")]
    pub is_separated: bool,
    /// The runs of each pair: of A, of B.
    pub compared_runs: Vec<[RunId; 2]>,
}

/// The verdict of a comparison on B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ComparisonVerdict {
    /// B is worse.
    #[serde(rename = "worse")]
    Worse,
    /// B is better.
    #[serde(rename = "better")]
    Better,
    /// The pairs decide nothing.
    #[serde(rename = "undecided")]
    Undecided,
    /// They are the same, within the floor.
    #[serde(rename = "same")]
    Same,
}

impl ComparisonVerdict {
    /// Every verdict, the ones that need a look first.
    pub const ALL: [Self; 4] = [Self::Worse, Self::Better, Self::Undecided, Self::Same];

    /// Returns the words for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Undecided => "undecided",
            Self::Same => "same",
        }
    }
}

impl From<Verdict> for ComparisonVerdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Better => Self::Better,
            Verdict::Worse => Self::Worse,
            Verdict::Same => Self::Same,
            Verdict::Undecided(_) => Self::Undecided,
        }
    }
}

/// The origin of a floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorOrigin {
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
