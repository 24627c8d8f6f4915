//! Pairs the runs of two sides by combination and device, and judges each group.

use std::collections::{BTreeMap, BTreeSet};

use regatta_compare::{
    AaFloor, FloorSource, MIN_PAIRS, MorePairs, Verdict, compare,
    pairing::{Side, is_separated, pair},
    robust::median,
};
use regatta_types::{DeviceId, RunId};

use super::{
    history::conditions_of,
    measured::{self, MeasuredRun, Selected},
    selection::{self, Runs},
};
use crate::{
    comparisons::{Combination, ComparisonReport, ComparisonRow, FloorOrigin, SideDifference},
    wording::count_of_runs,
};
use regatta_lab_store::{RunRow, lab_error::LabError};

/// Compares the second side with the first.
///
/// # Errors
/// Returns an error when no pair of runs can be compared.
pub fn report(
    sides: Vec<Selected>,
    all: &Runs<'_>,
    least_floor: Option<f64>,
) -> Result<ComparisonReport, LabError> {
    let [a, b] =
        <[Selected; 2]>::try_from(sides).map_err(|_| LabError::misuse("a comparison has two sides"))?;
    let mut floors = Floors {
        all,
        sides: [&a, &b].map(|side| side.runs.iter().map(|run| run.run).collect()),
        least: least_floor.unwrap_or(AaFloor::MIN),
        known: BTreeMap::new(),
    };
    let mut rows = Vec::new();
    let mut not_compared = Vec::new();
    let combinations: BTreeSet<&Combination> = [&a, &b]
        .into_iter()
        .flat_map(|side| side.runs.iter().map(|run| &run.combination))
        .collect();
    for combination in combinations {
        let [of_a, of_b] = [&a, &b].map(|side| {
            let runs = side.runs.iter().filter(|run| run.combination == *combination);
            runs.collect::<Vec<_>>()
        });
        match (of_a.len(), of_b.len()) {
            (runs, 0) => not_compared.push(format!(
                "{}: {} of A, none of B",
                combination.text(),
                count_of_runs(runs)
            )),
            (0, runs) => not_compared.push(format!(
                "{}: {} of B, none of A",
                combination.text(),
                count_of_runs(runs)
            )),
            _ => rows.extend(compared(
                combination,
                &of_a,
                &of_b,
                &mut floors,
                &mut not_compared,
            )),
        }
    }
    if rows.is_empty() {
        let why = |name: &str, side: &Selected| {
            format!(
                "{name}: {} runs count{}",
                side.runs.len(),
                crate::wording::excluded(&side.summary)
            )
        };
        let mut reasons = vec![why("A", &a), why("B", &b)];
        reasons.extend(not_compared);
        let excluded = a.summary.excluded.iter().chain(&b.summary.excluded);
        reasons.extend(crate::wording::include_hint(excluded));
        return Err(LabError::misuse("there is nothing to compare").hint(reasons.join("\n")));
    }
    Ok(ComparisonReport {
        differences: differences(&a, &b, all),
        a: a.summary,
        b: b.summary,
        rows,
        not_compared,
    })
}

/// Returns the recorded conditions in which the runs of the sides differ. A condition with the same set of values on both sides is left out.
fn differences(a: &Selected, b: &Selected, all: &Runs<'_>) -> Vec<SideDifference> {
    let rows: BTreeMap<RunId, &RunRow> = all.rows.iter().map(|row| (row.id, row)).collect();
    let conditions = |side: &Selected| {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in side.runs.iter().filter_map(|run| rows.get(&run.run)) {
            for (name, value) in conditions_of(row, all.workspace) {
                found.entry(name).or_default().insert(value);
            }
        }
        found
    };
    // Runs of a baseline file may be removed.
    let (mut of_a, mut of_b) = (conditions(a), conditions(b));
    if of_a.is_empty() || of_b.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<String> = of_a.keys().chain(of_b.keys()).cloned().collect();
    let compared = names.into_iter().map(|name| SideDifference {
        a: of_a.remove(&name).unwrap_or_default(),
        b: of_b.remove(&name).unwrap_or_default(),
        name,
    });
    compared
        .filter(|difference| difference.a != difference.b)
        .collect()
}

/// Judges the runs of one combination: by device if the sides have devices in common, otherwise across devices.
fn compared(
    combination: &Combination,
    a: &[&MeasuredRun],
    b: &[&MeasuredRun],
    floors: &mut Floors<'_>,
    not_compared: &mut Vec<String>,
) -> Vec<ComparisonRow> {
    let devices =
        |runs: &[&MeasuredRun]| -> BTreeSet<DeviceId> { runs.iter().map(|run| run.device.clone()).collect() };
    let [of_a, of_b] = [devices(a), devices(b)];
    let common: Vec<&DeviceId> = of_a.intersection(&of_b).collect();
    if common.is_empty() {
        let floor = floors.of_all(of_a.union(&of_b), combination);
        let names = format!("{} → {}", names(a), names(b));
        return vec![row(combination, names, vec![Group::of(a, b)], floor)];
    }
    let one_sided = of_a.symmetric_difference(&of_b).count();
    if one_sided > 0 {
        not_compared.push(format!(
            "{}: {one_sided} devices with runs of one side only",
            combination.text()
        ));
    }
    let mut rows = Vec::new();
    let mut groups = Vec::new();
    for device in &common {
        let [a, b] = [a, b].map(|runs| {
            let own = runs.iter().copied().filter(|run| run.device == **device);
            own.collect::<Vec<_>>()
        });
        let floor = floors.of(device, combination);
        rows.push(row(combination, names(&a), vec![Group::of(&a, &b)], floor));
        groups.push(Group::of(&a, &b));
    }
    if groups.len() > 1 {
        let floor = floors.of_all(common.iter().copied(), combination);
        rows.push(row(
            combination,
            format!("all {} devices", groups.len()),
            groups,
            floor,
        ));
    }
    rows
}

/// Returns the name of the runs' only device, or the number of devices.
fn names(runs: &[&MeasuredRun]) -> String {
    let names: BTreeMap<&DeviceId, &str> = runs
        .iter()
        .map(|run| (&run.device, run.device_name.as_str()))
        .collect();
    match names.len() {
        1 => names.into_values().collect(),
        several => format!("{several} devices"),
    }
}

/// The runs of a device, paired by time.
struct Group {
    log_ratios: Vec<f64>,
    pairs: Vec<[RunId; 2]>,
    values: [Vec<f64>; 2],
    is_separated: bool,
}

impl Group {
    fn of(a: &[&MeasuredRun], b: &[&MeasuredRun]) -> Self {
        let sides = |side| move |run: &&MeasuredRun| (run.started, run.run, side, run.value);
        let mut runs: Vec<_> = a.iter().copied().map(|run| sides(Side::A)(&run)).collect();
        runs.extend(b.iter().copied().map(|run| sides(Side::B)(&run)));
        runs.sort_unstable_by_key(|(started, run, ..)| (*started, *run));
        let sequence: Vec<Side> = runs.iter().map(|(_, _, side, _)| *side).collect();
        let found = pair(&sequence);
        Self {
            log_ratios: found
                .pairs
                .iter()
                .map(|&(a, b)| (runs[b].3 / runs[a].3).ln())
                .collect(),
            is_separated: is_separated(&found.pairs),
            pairs: found.pairs.iter().map(|&(a, b)| [runs[a].1, runs[b].1]).collect(),
            values: [a, b].map(|runs| runs.iter().map(|run| run.value).collect()),
        }
    }
}

fn row(combination: &Combination, device: String, groups: Vec<Group>, found_floor: Floor) -> ComparisonRow {
    let floor = found_floor.value;
    let strata: Vec<&[f64]> = groups.iter().map(|group| group.log_ratios.as_slice()).collect();
    let found = compare(&strata, combination.direction(), floor);
    let count = |side: usize| groups.iter().map(|group| group.values[side].len()).sum();
    let median_of = |side: usize| {
        median(
            &groups
                .iter()
                .flat_map(|group| group.values[side].clone())
                .collect::<Vec<_>>(),
        )
    };
    let verdict = found.map_or(Verdict::Undecided(MorePairs::TooMany), |found| found.verdict);
    let ratio = found.map_or(f64::NAN, |found| found.ratio);
    let pairs: Vec<[RunId; 2]> = groups.iter().flat_map(|group| group.pairs.clone()).collect();
    ComparisonRow {
        device,
        combination: combination.clone(),
        better: combination.better(),
        runs_a: count(0),
        runs_b: count(1),
        median_a: median_of(0),
        median_b: median_of(1),
        pairs: pairs.len(),
        ratio,
        interval: found.and_then(|found| found.interval),
        bootstrap_interval: found.and_then(|found| found.bootstrap),
        floor: floor.share(),
        floor_pairs: floor.pairs(),
        is_floor_measured: floor.is_measured(),
        floor_origin: found_floor.origin(),
        verdict: verdict.into(),
        more_pairs: match verdict {
            Verdict::Undecided(MorePairs::Enough(more) | MorePairs::AtLeast(more)) => Some(more),
            _ => None,
        },
        verdict_text: verdict_text(verdict, ratio, pairs.len(), count(0) == 1 && count(1) == 1),
        is_separated: groups.iter().any(|group| group.is_separated),
        compared_runs: pairs,
    }
}

/// Returns the verdict as text, such as `better by 3.2 %`.
fn verdict_text(verdict: Verdict, ratio: f64, pairs: usize, is_one_run_each: bool) -> String {
    let percent = (ratio - 1.0).abs() * 100.0;
    match verdict {
        Verdict::Better | Verdict::Worse => format!("{} by {percent:.1} %", verdict.as_str()),
        Verdict::Same => "same".to_owned(),
        Verdict::Undecided(_) if is_one_run_each => "undecided: one run each is not a comparison".to_owned(),
        Verdict::Undecided(MorePairs::Enough(1)) => "undecided: about 1 more pair needed".to_owned(),
        Verdict::Undecided(MorePairs::Enough(more)) => format!("undecided: about {more} more pairs needed"),
        Verdict::Undecided(MorePairs::AtLeast(more)) => {
            format!("undecided: at least {} pairs needed", pairs + more)
        }
        Verdict::Undecided(MorePairs::TooMany) => format!(
            "undecided: more than {} pairs needed",
            regatta_compare::plan::MAX_PAIRS
        ),
    }
}

/// The log-ratios of a device's A/A pairs.
#[derive(Default)]
struct AaPairs {
    /// Of the compared runs.
    compared: Vec<f64>,
    /// Of the device's other runs, whose settings or software may differ from those of the compared ones.
    others: Vec<f64>,
}

/// A floor and the runs from which it was computed.
#[derive(Clone, Copy)]
struct Floor {
    value: AaFloor,
    /// Whether only the compared runs were used.
    is_of_compared_runs: bool,
}

impl Floor {
    /// Measures the floor from the compared runs. When these are too few, the device's other runs count, too.
    fn of(pairs: &AaPairs) -> Self {
        let is_of_compared_runs = pairs.compared.len() >= MIN_PAIRS;
        let value = if is_of_compared_runs {
            AaFloor::measured(&pairs.compared)
        } else {
            AaFloor::measured(&[pairs.compared.as_slice(), &pairs.others].concat())
        };
        Self {
            value,
            is_of_compared_runs,
        }
    }

    fn joined(self, other: Self) -> Self {
        Self {
            value: self.value.joined(other.value),
            is_of_compared_runs: self.is_of_compared_runs && other.is_of_compared_runs,
        }
    }

    fn origin(self) -> FloorOrigin {
        match (self.value.source(), self.is_of_compared_runs) {
            (FloorSource::Assumed, _) => FloorOrigin::Assumed,
            (FloorSource::Unbiased, _) => FloorOrigin::NoDrift,
            (FloorSource::Requested, _) => FloorOrigin::Requested,
            (FloorSource::Bias, true) => FloorOrigin::DriftOfComparedRuns,
            (FloorSource::Bias, false) => FloorOrigin::DriftOfOtherRuns,
        }
    }
}

/// The A/A floors of devices, computed when they are needed.
struct Floors<'a> {
    all: &'a Runs<'a>,
    /// The runs of each side. A pair of runs from both sides is not an A/A pair, because the difference may not be recorded in any document.
    sides: [BTreeSet<RunId>; 2],
    least: f64,
    known: BTreeMap<DeviceId, BTreeMap<Combination, AaPairs>>,
}

impl Floors<'_> {
    fn of_all<'d>(
        &mut self,
        devices: impl Iterator<Item = &'d DeviceId>,
        combination: &Combination,
    ) -> Floor {
        let floors = devices.map(|device| self.of(device, combination));
        floors
            .reduce(Floor::joined)
            .unwrap_or_else(|| Floor::of(&AaPairs::default()))
    }

    /// Returns the floor of a device for the figure of a combination.
    fn of(&mut self, device: &DeviceId, combination: &Combination) -> Floor {
        if !self.known.contains_key(device) {
            let measured = self.log_ratios(device);
            self.known.insert(device.clone(), measured);
        }
        let own = self.known.get(device).and_then(|known| known.get(combination));
        let found = own.map_or_else(|| Floor::of(&AaPairs::default()), Floor::of);
        Floor {
            value: found.value.at_least(self.least),
            ..found
        }
    }

    /// Returns the log-ratios of a device's A/A pairs: each two runs that follow each other, of equal spec, agent and system software, on
    /// the same side.
    fn log_ratios(&self, device: &DeviceId) -> BTreeMap<Combination, AaPairs> {
        let mut groups: BTreeMap<String, Vec<MeasuredRun>> = BTreeMap::new();
        for row in self.all.rows.iter().filter(|row| row.device == *device) {
            if measured::exclusion(row, &[measured::Inclusion::Short, measured::Inclusion::Simulated])
                .is_some()
            {
                continue;
            }
            if let Some((run, conditions)) = measured::measured_run(row).zip(self.conditions(row)) {
                groups.entry(conditions).or_default().push(run);
            }
        }
        let mut found: BTreeMap<Combination, AaPairs> = BTreeMap::new();
        for mut runs in groups.into_values() {
            runs.sort_unstable_by_key(|run| (run.started, run.run));
            for pair in runs.chunks_exact(2) {
                let pairs = found.entry(pair[0].combination.clone()).or_default();
                let is_compared = self.sides.iter().any(|side| side.contains(&pair[0].run));
                let ratios = if is_compared {
                    &mut pairs.compared
                } else {
                    &mut pairs.others
                };
                ratios.push((pair[1].value / pair[0].value).ln());
            }
        }
        found
    }

    /// Returns everything that must be equal in A/A pairs. `None` when the spec cannot be serialised.
    fn conditions(&self, row: &RunRow) -> Option<String> {
        let mut draft = row.draft.clone();
        draft.spec.created.clear();
        let mut spec = serde_json::to_value(&draft).ok()?;
        spec.pointer_mut("/spec/run")?.take();
        let evidence = selection::evidence(&self.all.workspace.run(row.id));
        let software = evidence.map(|found| (found.agent, found.before.os, found.before.kernel));
        let sides = [&self.sides[0], &self.sides[1]].map(|side| side.contains(&row.id));
        serde_json::to_string(&(spec, software, sides)).ok()
    }
}
