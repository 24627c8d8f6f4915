//! Estimates the duration of campaigns. A plan's estimate uses past runs and settings; a running campaign's uses its attempts. Each
//! estimate states its basis.

use std::collections::BTreeMap;

use jiff::Timestamp;
use regatta_power::session::OFFICIAL_WAITS;
use regatta_types::DeviceId;
use serde::Serialize;

use super::ExpandedPlan;
use regatta_lab_runs::{least_seconds, likely_seconds};
use regatta_lab_store::{self as store, AttemptRow, CellRow, CellState, RunDraft, RunRow, Store};

/// The basis of an expected time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeBasis {
    /// The median of LoadGen's time in past runs on these devices.
    PastRuns,
    /// The rate or latency in the settings, for example from a system's published results.
    ExpectedRate,
    /// The shortest time that the settings allow.
    Settings,
    /// No basis is known.
    None,
}

/// The expected time of one run of a combination.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunEstimate {
    /// The likely time in seconds, without preparation and delivery.
    pub seconds: Option<f64>,
    /// The minimum time in seconds that the settings allow.
    pub least_seconds: Option<f64>,
    /// Its basis.
    pub basis: TimeBasis,
}

/// The expected time of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanEstimate {
    /// The expected time of a run of each combination.
    #[serde(skip)]
    pub runs: Vec<RunEstimate>,
    /// The expected duration of the campaign in seconds if no device is ever idle. Preparation, delivery and retries are not included.
    pub expected_seconds: f64,
    /// The number of cells by past runs.
    pub cells_by_past_runs: u64,
    /// The number of cells that are estimated from the rate in their settings.
    pub cells_by_expected_rate: u64,
    /// The number of cells that are estimated from their minimum duration.
    pub cells_by_settings: u64,
    /// The number of cells without a basis. They count as no time.
    pub cells_without_basis: u64,
}

/// Returns the expected time of a plan.
///
/// # Errors
/// Returns an error when the store fails.
pub fn estimate(plan: &ExpandedPlan, store: &Store) -> store::Result<PlanEstimate> {
    let mut runs = Vec::with_capacity(plan.combinations.len());
    let mut known: BTreeMap<(DeviceId, String, &'static str), Vec<RunRow>> = BTreeMap::new();
    for (combination, draft) in plan.combinations.iter().zip(&plan.drafts) {
        let mut times = Vec::new();
        for device in &combination.devices {
            let key = (
                device.clone(),
                draft.spec.benchmark.name.clone(),
                draft.spec.engine.kind.as_str(),
            );
            if !known.contains_key(&key) {
                let mut on_device = draft.clone();
                on_device.spec.device = device.clone();
                known.insert(key.clone(), store.runs().recorded_like(&on_device)?);
            }
            let past = known.get(&key).into_iter().flatten();
            times.extend(
                past.filter(|row| is_alike(row, draft))
                    .filter_map(loadgen_seconds),
            );
        }
        let run = run_estimate(quartiles(times), draft);
        runs.push(match combination.meter {
            // A ranging run and a testing run.
            Some(_) => RunEstimate {
                seconds: run
                    .seconds
                    .map(|seconds| 2.0 * seconds + OFFICIAL_WAITS.as_secs_f64()),
                ..run
            },
            None => run,
        });
    }
    Ok(total(plan, runs))
}

/// Estimates the duration of a run from the best available basis.
fn run_estimate(past_runs: Option<[f64; 3]>, draft: &RunDraft) -> RunEstimate {
    let least = least_seconds(&draft.spec).map(|seconds| seconds as f64);
    let (seconds, basis) = if let Some([_, median, _]) = past_runs {
        (Some(median), TimeBasis::PastRuns)
    } else if let Some(likely) = likely_seconds(&draft.spec) {
        (Some(likely), TimeBasis::ExpectedRate)
    } else if least.is_some() {
        (least, TimeBasis::Settings)
    } else {
        (None, TimeBasis::None)
    };
    RunEstimate {
        seconds,
        least_seconds: least,
        basis,
    }
}

fn total(plan: &ExpandedPlan, runs: Vec<RunEstimate>) -> PlanEstimate {
    let mut counts = [0_u64; 4];
    let mut sum = 0.0;
    let mut on_device: BTreeMap<&DeviceId, f64> = BTreeMap::new();
    for combination in &plan.combinations {
        for device in &combination.devices {
            on_device.entry(device).or_default();
        }
    }
    for cell in &plan.cells {
        let index = usize::try_from(cell.combination).unwrap_or(usize::MAX);
        let Some(run) = runs.get(index) else { continue };
        let seconds = run.seconds.unwrap_or(0.0);
        sum += seconds;
        if let Some(device) = &cell.device {
            *on_device.entry(device).or_default() += seconds;
        }
        let place = match run.basis {
            TimeBasis::PastRuns => 0,
            TimeBasis::ExpectedRate => 1,
            TimeBasis::Settings => 2,
            TimeBasis::None => 3,
        };
        counts[place] += 1;
    }
    let evenly = sum / on_device.len().max(1) as f64;
    let [
        cells_by_past_runs,
        cells_by_expected_rate,
        cells_by_settings,
        cells_without_basis,
    ] = counts;
    PlanEstimate {
        expected_seconds: on_device.values().copied().fold(evenly, f64::max),
        cells_by_past_runs,
        cells_by_expected_rate,
        cells_by_settings,
        cells_without_basis,
        runs,
    }
}

/// Returns whether a past run's time is a basis for a draft's run.
pub(super) fn is_alike(row: &RunRow, draft: &RunDraft) -> bool {
    let (past, spec) = (&row.draft.spec, &draft.spec);
    row.is_usable()
        && past.audit.is_none()
        && past.task == spec.task
        && past.scenario == spec.scenario
        && past.mode == spec.mode
        && past.engine == spec.engine
        && past.length == spec.length
        && row.draft.user_settings == draft.user_settings
}

/// Returns the duration of LoadGen's run in seconds.
pub(super) fn loadgen_seconds(row: &RunRow) -> Option<f64> {
    let nanoseconds = row.outcome.as_ref()?.judgement.timing.as_ref()?.duration_ns?;
    Some(nanoseconds as f64 / 1e9)
}

/// The time that a running campaign still takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimeLeft {
    /// The expected time in seconds, by the medians of finished attempts.
    pub seconds: f64,
    /// The same by their lower quartiles.
    pub low_seconds: f64,
    /// The same by their upper quartiles.
    pub high_seconds: f64,
    /// The number of good attempts in its basis.
    pub from_attempts: usize,
    /// The number of cells whose combination has no good attempt yet. They count as no time.
    pub cells_without_basis: usize,
}

/// Returns the time that the open and waiting cells still take on `devices` devices. `None` before the first good attempt.
pub fn time_left(
    cells: &[CellRow],
    attempts: &[AttemptRow],
    devices: usize,
    now: Timestamp,
) -> Option<TimeLeft> {
    let of_cell: BTreeMap<u64, &CellRow> = cells.iter().map(|cell| (cell.number, cell)).collect();
    let mut by_combination: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let mut open: BTreeMap<u64, f64> = BTreeMap::new();
    for attempt in attempts {
        let Some(cell) = of_cell.get(&attempt.cell) else {
            continue;
        };
        match &attempt.ended {
            Some(ended) if attempt.cause.is_none() => {
                let seconds = seconds_between(&attempt.requested, ended);
                by_combination
                    .entry(cell.combination)
                    .or_default()
                    .extend(seconds);
            }
            Some(_) => {}
            None => {
                let elapsed = seconds_between(&attempt.requested, &now.to_string());
                open.insert(attempt.cell, elapsed.unwrap_or(0.0));
            }
        }
    }
    let from_attempts = by_combination.values().map(Vec::len).sum();
    let quartiles_of: BTreeMap<u64, [f64; 3]> = by_combination
        .into_iter()
        .filter_map(|(combination, times)| Some((combination, quartiles(times)?)))
        .collect();
    if quartiles_of.is_empty() {
        return None;
    }
    let mut sums = [0.0_f64; 3];
    let mut longest = [0.0_f64; 3];
    let mut cells_without_basis = 0;
    for cell in cells.iter().filter(|cell| cell.state == CellState::Waiting) {
        let Some(own) = quartiles_of.get(&cell.combination) else {
            cells_without_basis += 1;
            continue;
        };
        let elapsed = open.get(&cell.number).copied().unwrap_or(0.0);
        for (place, time) in own.iter().enumerate() {
            let left = (time - elapsed).max(0.0);
            sums[place] += left;
            longest[place] = longest[place].max(left);
        }
    }
    let spread = |place: usize| (sums[place] / devices.max(1) as f64).max(longest[place]);
    Some(TimeLeft {
        low_seconds: spread(0),
        seconds: spread(1),
        high_seconds: spread(2),
        from_attempts,
        cells_without_basis,
    })
}

fn seconds_between(start: &str, end: &str) -> Option<f64> {
    let [start, end]: [Timestamp; 2] = [start.parse().ok()?, end.parse().ok()?];
    Some(end.duration_since(start).as_secs_f64().max(0.0))
}

/// Returns the lower quartile, the median and the upper quartile.
fn quartiles(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |quarter: usize| values[(last * quarter + 2) / 4];
    Some([at(1), at(2), at(3)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(number: u64, combination: u64, state: CellState) -> CellRow {
        CellRow {
            number,
            position: number,
            combination,
            repetition: 1,
            device: None,
            state,
            cause: None,
            reason: None,
            counted_from: 0,
            audited: None,
        }
    }

    fn attempt(cell: u64, requested: &str, ended: Option<&str>) -> AttemptRow {
        AttemptRow {
            campaign: String::new(),
            cell,
            number: 1,
            device: "ab".repeat(16).parse().unwrap(),
            run: None,
            session: None,
            requested: requested.to_owned(),
            ended: ended.map(str::to_owned),
            cause: None,
            reason: None,
            is_run_over: ended.is_some(),
        }
    }

    #[test]
    fn quartiles_of_few_values() {
        assert_eq!(quartiles(Vec::new()), None);
        assert_eq!(quartiles(vec![3.0]), Some([3.0; 3]));
        assert_eq!(quartiles(vec![5.0, 1.0, 4.0, 2.0, 3.0]), Some([2.0, 3.0, 4.0]));
    }

    #[test]
    fn the_time_left_is_that_of_the_cells_over_the_devices() {
        let cells = [
            cell(1, 0, CellState::Good),
            cell(2, 0, CellState::Waiting),
            cell(3, 0, CellState::Waiting),
            cell(4, 1, CellState::Waiting),
        ];
        let now = "2026-11-23T10:01:30Z".parse().unwrap();
        assert_eq!(time_left(&cells, &[], 2, now), None, "nothing to go by");
        let attempts = [
            attempt(1, "2026-11-23T10:00:00Z", Some("2026-11-23T10:01:00Z")),
            attempt(2, "2026-11-23T10:01:00Z", None),
        ];
        let left = time_left(&cells, &attempts, 2, now).unwrap();
        // 30 s of the open cell and 60 s of the waiting one on two devices. Nothing is known of the fourth.
        assert_eq!(
            (left.seconds, left.from_attempts, left.cells_without_basis),
            (60.0, 1, 1)
        );
    }
}
