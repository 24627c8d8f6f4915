//! The figures of each device over time, their median and deviation, and the change points with the changes.

use std::collections::{BTreeMap, BTreeSet};

use regatta_compare::{
    Direction,
    change_points::{ChangePoint, change_points},
    robust::{mad, median},
};
use regatta_types::DeviceId;

use super::{
    measured::{self, MeasuredRun},
    request::RunConditions,
    selection::{self, Runs, evidence},
};
use crate::{
    comparisons::{Combination, ComparisonVerdict, History, HistoryChange, HistoryPoint, HistoryReport},
    wording,
};
use regatta_lab_store::{RunRow, lab_error::LabError, workspace::Workspace};

/// The fewest runs whose change points are searched. Fewer have only a median and a deviation.
pub const MIN_RUNS: usize = 20;

/// Returns the history of each device and combination among the runs that the words of a selection name, or among all runs.
///
/// # Errors
/// Returns an error when the words are unknown, or no run counts.
pub fn histories(
    words: Option<&str>,
    conditions: &RunConditions,
    all: &Runs<'_>,
) -> Result<HistoryReport, LabError> {
    let is_selected = conditions.filter.selection(all.workspace, all.store, &all.rows)?;
    let mut rows: Vec<&RunRow> = match words {
        Some(words) => selection::find(words, all)?,
        None => all.rows.iter().collect(),
    };
    rows.retain(|row| is_selected(row));
    let (runs, excluded) = measured::measured(&rows, &BTreeSet::new(), &conditions.include);
    if runs.is_empty() {
        return Err(LabError::misuse("no run qualifies").hint(if excluded.is_empty() {
            "`regatta runs list` shows the runs".to_owned()
        } else {
            let hint = wording::include_hint(&excluded);
            let excluded = format!("left out: {}", wording::excluded_runs(&excluded));
            [Some(excluded), hint]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("\n")
        }));
    }
    let mut series: BTreeMap<(String, DeviceId, Combination), Vec<MeasuredRun>> = BTreeMap::new();
    for run in runs {
        let key = (
            run.device_name.clone(),
            run.device.clone(),
            run.combination.clone(),
        );
        series.entry(key).or_default().push(run);
    }
    let by_id: BTreeMap<_, _> = rows.iter().map(|row| (row.id, *row)).collect();
    let histories = series.into_iter().map(|((device, _, combination), mut runs)| {
        runs.sort_unstable_by_key(|run| (run.started, run.run));
        history(device, combination, &runs, |run| {
            by_id
                .get(&run.run)
                .map(|row| conditions_of(row, all.workspace))
                .unwrap_or_default()
        })
    });
    Ok(HistoryReport {
        histories: histories.collect(),
        excluded,
    })
}

fn history(
    device: String,
    combination: Combination,
    runs: &[MeasuredRun],
    conditions: impl Fn(&MeasuredRun) -> BTreeMap<String, String>,
) -> History {
    let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    let points = (values.len() >= MIN_RUNS).then(|| change_points(&values));
    let is_smaller_better = combination.direction() == Direction::Smaller;
    let change = |point: &ChangePoint| {
        let [before, after] = [&runs[point.position - 1], &runs[point.position]];
        HistoryChange {
            run: after.run,
            started: after.started.to_string(),
            mean_before: point.mean_before,
            mean_after: point.mean_after,
            p_value: point.p_value,
            verdict: if (point.mean_after < point.mean_before) == is_smaller_better {
                ComparisonVerdict::Better
            } else {
                ComparisonVerdict::Worse
            },
            differences: differences(&conditions(before), &conditions(after)),
        }
    };
    let level = points.iter().flatten().last().map_or(0, |last| last.position);
    History {
        device,
        better: combination.better(),
        combination,
        median: median(&values[level..]),
        mad: mad(&values[level..]),
        level_runs: values.len() - level,
        changes: points.map(|points| points.iter().map(change).collect()),
        points: runs
            .iter()
            .map(|run| HistoryPoint {
                run: run.run,
                started: run.started.to_string(),
                value: run.value,
            })
            .collect(),
    }
}

/// Returns the recorded conditions that may change a run's figure, by name.
pub(super) fn conditions_of(row: &RunRow, workspace: &Workspace) -> BTreeMap<String, String> {
    let spec = &row.draft.spec;
    let mut found = BTreeMap::new();
    let mut add = |name: &str, value: String| {
        found.insert(name.to_owned(), value);
    };
    add("round", spec.round.clone());
    add("requested LoadGen", spec.loadgen.to_string());
    add("requested engine", spec.engine.kind.to_string());
    for (setting, value) in spec.engine.settings.iter() {
        add(&format!("setting {}", setting.name), value.to_string());
    }
    for (key, value) in &row.draft.user_settings {
        add(&format!("conf {key}"), value.clone());
    }
    if let Some(state) = &spec.state {
        add("device state", format!("{} {}", state.name, state.words()));
    }
    if let Some(system) = &spec.system {
        add(
            "system file",
            format!("{} {}", system.file, system.sha256.as_deref().unwrap_or_default()),
        );
    }
    if let Some(evidence) = evidence(&workspace.run(row.id)) {
        add("agent", evidence.agent);
        add("operating system", evidence.before.os);
        add("kernel", evidence.before.kernel);
        add("CPU governor", evidence.before.cpu_governor.unwrap_or_default());
        for gpu in evidence.before.gpus {
            add("GPU", gpu.name);
        }
        if let Some(attempt) = evidence.attempts.into_iter().next_back() {
            add("engine", attempt.engine);
            if let Some(loadgen) = attempt.loadgen {
                add(
                    "LoadGen",
                    format!(
                        "{} {} {}",
                        loadgen.implementation, loadgen.version, loadgen.revision
                    ),
                );
            }
        }
    }
    found
}

/// Describes every condition that differs.
fn differences(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let text = |value: Option<&String>| match value.map(String::as_str) {
        None | Some("") => "none".to_owned(),
        Some(value) => value.to_owned(),
    };
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| format!("{name}: {} → {}", text(before.get(name)), text(after.get(name))))
        .collect()
}
