//! The runs that count in a comparison: those with the figure that the checker reports, complete, signed and undisturbed. The others are
//! counted by their reason.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use jiff::Timestamp;
use regatta_types::{
    DeviceId, RunId,
    documents::{RunLength, RunMarker, RunPhase, RunSpec},
};
use serde::{Deserialize, Serialize};

use crate::{
    comparisons::{AS_FOUND, Combination, ComparedSide, ExcludedRuns, FULL_LENGTH},
    wording::run_text,
};
use regatta_lab_runs::markers;
use regatta_lab_store::RunRow;
use regatta_types::documents::Metric;

/// Runs that a comparison leaves out unless a user includes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Inclusion {
    /// Runs that are shorter than the round requires
    Short,
    /// Runs of engines that do not execute the model
    Simulated,
}

/// One run with its figure. The form of baseline files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRun {
    pub run: RunId,
    pub device: DeviceId,
    pub device_name: String,
    #[serde(flatten)]
    pub combination: Combination,
    pub value: f64,
    /// The time when LoadGen started.
    pub started: Timestamp,
}

/// A selection with its runs.
pub struct Selected {
    pub runs: Vec<MeasuredRun>,
    pub summary: ComparedSide,
}

/// Returns the runs that count, and the numbers of the others by reason. Runs of `common` are on both sides.
pub(super) fn measured(
    rows: &[&RunRow],
    common: &BTreeSet<RunId>,
    include: &[Inclusion],
) -> (Vec<MeasuredRun>, Vec<ExcludedRuns>) {
    let mut runs = Vec::new();
    let mut reasons: BTreeMap<&'static str, usize> = BTreeMap::new();
    for row in rows {
        let found = match exclusion(row, include) {
            Some(reason) => Err(reason),
            None if common.contains(&row.id) => Err("in both selections"),
            None => measured_run(row).ok_or("without a figure that counts in a submission"),
        };
        match found {
            Ok(run) => runs.push(run),
            Err(reason) => *reasons.entry(reason).or_default() += 1,
        }
    }
    let excluded = reasons.into_iter().map(|(reason, runs)| ExcludedRuns {
        reason: reason.to_owned(),
        runs,
    });
    (runs, excluded.collect())
}

/// Returns the reason why a run does not count.
pub(super) fn exclusion(row: &RunRow, include: &[Inclusion]) -> Option<&'static str> {
    let is_included = |inclusion| include.contains(&inclusion);
    let markers = markers(row);
    if row.audit().is_some() {
        return Some("audits");
    }
    if !row.draft.spec.task.is_measurement() {
        return Some("engine builds");
    }
    let Some(outcome) = &row.outcome else {
        return Some("unfinished");
    };
    match row.state.phase {
        RunPhase::Failed => return Some("failed"),
        RunPhase::Aborted => return Some("aborted"),
        _ => {}
    }
    if !row.mode.has_verdict() {
        return Some("accuracy runs");
    }
    if outcome.judgement.valid == Some(false) {
        return Some("INVALID");
    }
    if !row.is_usable() {
        return Some("with incomplete or unsigned evidence");
    }
    if markers.contains(&RunMarker::Simulated) && !is_included(Inclusion::Simulated) {
        return Some("simulated");
    }
    if markers.contains(&RunMarker::Short) && !is_included(Inclusion::Short) {
        return Some("short");
    }
    // The device knows more than the spec, for example that a requested state did not hold.
    let of_spec = row.draft.spec.not_a_measurement();
    let mut of_device = outcome.judgement.not_a_measurement.iter();
    of_device
        .any(|reason| !of_spec.contains(reason))
        .then_some("disturbed, as their devices report")
}

/// Returns a run with the figure that `runs show` prints, if it is one that the checker reports.
pub(super) fn measured_run(row: &RunRow) -> Option<MeasuredRun> {
    let judged = row.outcome.as_ref()?.judgement.figure.as_ref()?;
    let started = run_text::start(row).or_else(|| row.draft.spec.created.parse().ok())?;
    Some(MeasuredRun {
        run: row.id,
        device: row.device.clone(),
        device_name: run_text::device(row),
        combination: combination(row, judged),
        value: judged.value,
        started,
    })
}

fn combination(row: &RunRow, judged: &Metric) -> Combination {
    let spec = &row.draft.spec;
    Combination {
        benchmark: row.benchmark.clone(),
        scenario: row.scenario.as_str().to_owned(),
        mode: row.mode.as_str().to_owned(),
        power: power(spec),
        length: match spec.length {
            RunLength::Full => FULL_LENGTH.to_owned(),
            RunLength::TestRun => "60 s".to_owned(),
            RunLength::Duration(milliseconds) => format!("{milliseconds} ms"),
        },
        figure: judged.name.clone(),
        unit: judged.unit.clone(),
    }
}

fn power(spec: &RunSpec) -> String {
    let Some(state) = &spec.state else {
        return AS_FOUND.to_owned();
    };
    match state.controls.get("power-mode") {
        Some(mode) => format!("{} {mode}", state.name),
        None => state.name.clone(),
    }
}
