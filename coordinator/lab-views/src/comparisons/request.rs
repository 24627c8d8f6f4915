//! The request for a comparison: words for each side, and conditions that hold for both.

use std::collections::BTreeSet;

use regatta_types::RunId;

use super::{
    measured::{self, Inclusion, Selected},
    selection::{self, Runs},
};
use crate::{comparisons::ComparedSide, lookup::RunFilter};
use regatta_lab_store::{RunRow, lab_error::LabError};

/// The conditions that hold for every side.
#[derive(Debug, Default)]
pub struct RunConditions {
    /// The runs that are considered.
    pub filter: RunFilter,
    /// Runs that count although they are otherwise left out.
    pub include: Vec<Inclusion>,
}

/// The error for an A/A floor that is not a percentage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a percentage from 1 to 99, such as 2.5")]
pub struct InvalidFloor;

/// Parses the least A/A floor, a percentage, into a share.
///
/// # Errors
/// Returns [`InvalidFloor`] when it is not a percentage from 1 to 99.
pub fn least_floor(text: &str) -> Result<f64, InvalidFloor> {
    text.trim_end_matches('%')
        .trim_end()
        .parse::<f64>()
        .ok()
        .filter(|percent| (1.0..100.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or(InvalidFloor)
}

/// Finds the measured runs of each side. Runs of both sides are on none, and runs of the baseline are not compared with themselves.
///
/// # Errors
/// Returns an error when the words of a side are unknown, or select no run.
pub fn select(
    sides: &[String],
    conditions: &RunConditions,
    baseline: Option<&Selected>,
    all: &Runs<'_>,
) -> Result<Vec<Selected>, LabError> {
    let is_filtered = conditions.filter.selection(all.workspace, all.store, &all.rows)?;
    let found = sides
        .iter()
        .map(|words| {
            let mut rows = selection::find(words, all)?;
            rows.retain(|row| is_filtered(row));
            Ok(rows)
        })
        .collect::<Result<Vec<Vec<&RunRow>>, LabError>>()?;
    let ids = |rows: &[&RunRow]| rows.iter().map(|row| row.id).collect::<BTreeSet<RunId>>();
    let common: BTreeSet<RunId> = match (found.as_slice(), baseline) {
        ([a, b], _) => ids(a).intersection(&ids(b)).copied().collect(),
        (_, Some(baseline)) => baseline.runs.iter().map(|run| run.run).collect(),
        _ => BTreeSet::new(),
    };
    let sides = found.iter().zip(sides).map(|(rows, words)| {
        let (runs, excluded) = measured::measured(rows, &common, &conditions.include);
        let summary = ComparedSide {
            selection: words.clone(),
            runs: runs.len(),
            excluded,
        };
        Selected { runs, summary }
    });
    Ok(sides.collect())
}
