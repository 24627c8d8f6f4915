//! The progress of a submission: for each device, benchmark and required scenario of a round, the accuracy run, the performance run, the audits and
//! the next command. `submission stage` makes the final decision, based on the signed files.

mod part;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use regatta_catalogue::{
    catalogue::Catalogue,
    round::{Round, SystemCategory},
};
use regatta_lab_runs::audit::have_same_settings;
use regatta_lab_store::{DeviceRow, RunRow, Store, StoreError};
use regatta_text::{escape, quote_for_shell_if_needed};
use regatta_types::{DeviceId, Mode, RunId, Scenario, benchmark::Benchmark, documents::PowerSetting};
use serde::Serialize;

use crate::wording::short_id;

pub use part::{PartState, PartStatus};

/// The results to include.
#[derive(Debug, Clone, Copy)]
pub struct StatusRequest<'a> {
    pub round: &'a Round,
    pub category: SystemCategory,
    /// Empty for every device that has a run of the round.
    pub devices: &'a [DeviceRow],
    /// Empty for every benchmark that the device has run.
    pub benchmarks: &'a [&'a Benchmark],
    /// The power setting. `None` includes each one that was measured.
    pub power: Option<PowerSetting>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SubmissionStatus {
    pub round: String,
    /// The category of the systems, as in `system_type`.
    pub category: &'static str,
    /// The results, ordered by device, benchmark and scenario.
    pub results: Vec<ResultStatus>,
}

impl SubmissionStatus {
    /// Returns whether there are results and all of them are complete.
    pub fn is_complete(&self) -> bool {
        !self.results.is_empty() && self.results.iter().all(ResultStatus::is_complete)
    }

    /// Returns the commands that continue with the results, without duplicates.
    pub fn next_commands(&self) -> Vec<&str> {
        let mut commands = Vec::new();
        for command in self.results.iter().filter_map(|result| result.next.as_deref()) {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        commands
    }

    /// Returns the reasons why parts failed, each with its run, and the distinct reasons why runs are only a rehearsal.
    pub fn reasons(&self) -> Vec<String> {
        let mut failed = Vec::new();
        let mut rehearsals = BTreeSet::new();
        for result in &self.results {
            for (name, part) in result.named_parts() {
                let detail = escape(part.detail.as_deref().unwrap_or_default()).into_owned();
                match (part.state, part.run) {
                    (PartState::Failed, Some(run)) => failed.push(format!(
                        "FAILED {} on {}, {name}, run {}: {detail}",
                        result.subject(),
                        escape(&result.device_name),
                        short_id(run)
                    )),
                    (PartState::Rehearsal, _) => {
                        rehearsals.insert(format!("rehearsal, cannot be submitted: {detail}"));
                    }
                    _ => {}
                }
            }
        }
        failed.extend(rehearsals);
        failed
    }

    /// Returns whether there are results and all of them are complete, except that some may be rehearsals.
    pub fn is_rehearsed(&self) -> bool {
        !self.results.is_empty() && self.results.iter().all(ResultStatus::is_rehearsed)
    }
}

/// The parts of one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResultStatus {
    pub device: DeviceId,
    pub device_name: String,
    pub benchmark: String,
    pub scenario: Scenario,
    /// `MaxQ` for a result of the power category. Such a result belongs to a separate system.
    pub power: Option<PowerSetting>,
    pub accuracy: PartStatus,
    pub performance: PartStatus,
    /// The audits that the round requires, by name.
    pub audits: BTreeMap<String, PartStatus>,
    /// The command that continues. `None` when the result is complete, or when a run has not ended.
    pub next: Option<String>,
}

impl ResultStatus {
    /// Returns whether all parts are done.
    pub fn is_complete(&self) -> bool {
        self.parts().all(|part| part.state == PartState::Done)
    }

    /// Returns whether all parts are done or are rehearsals.
    pub fn is_rehearsed(&self) -> bool {
        self.parts()
            .all(|part| matches!(part.state, PartState::Done | PartState::Rehearsal))
    }

    /// Returns whether both measurements are done, so that only audits are missing or failed.
    pub fn needs_only_audits(&self) -> bool {
        let measured = [&self.accuracy, &self.performance];
        !self.is_rehearsed()
            && measured
                .iter()
                .all(|part| matches!(part.state, PartState::Done | PartState::Rehearsal))
    }

    /// Returns the benchmark and the scenario for a sentence.
    pub fn subject(&self) -> String {
        let power = self.power.map_or("", |_| ", MaxQ");
        format!("{} {}{power}", escape(&self.benchmark), self.scenario)
    }

    /// Returns the parts with their names.
    fn named_parts(&self) -> impl Iterator<Item = (&str, &PartStatus)> {
        let audits = self.audits.iter().map(|(test, part)| (test.as_str(), part));
        [("accuracy", &self.accuracy), ("performance", &self.performance)]
            .into_iter()
            .chain(audits)
    }

    fn parts(&self) -> impl Iterator<Item = &PartStatus> {
        self.named_parts().map(|(_, part)| part)
    }
}

/// Returns the progress of a submission.
///
/// # Errors
/// Returns an error when the store fails.
pub fn submission_status(
    request: &StatusRequest<'_>,
    catalogue: &Catalogue,
    store: &Store,
) -> Result<SubmissionStatus, StoreError> {
    Ok(status_of(request, catalogue, &store.runs().all()?))
}

/// A device with a benchmark, either in MaxQ or not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct DeviceBenchmark {
    device_name: String,
    device: DeviceId,
    benchmark: String,
    is_max_q: bool,
}

/// Computes the progress from all runs, which are ordered newest first.
fn status_of(request: &StatusRequest<'_>, catalogue: &Catalogue, runs: &[RunRow]) -> SubmissionStatus {
    let of_round: Vec<&RunRow> = runs
        .iter()
        .filter(|row| row.draft.spec.round == request.round.name && row.draft.spec.task.is_measurement())
        .collect();
    let options = options(request, catalogue);
    let mut results = Vec::new();
    for subject in subjects(request, &of_round) {
        // The rules of a benchmark are unknown once its file was removed.
        let Ok(benchmark) = catalogue.benchmark(&subject.benchmark) else {
            continue;
        };
        let own = |row: &&RunRow| {
            row.device == subject.device
                && row.benchmark == subject.benchmark
                && (power_of(row) == PowerSetting::MaxQ) == subject.is_max_q
        };
        let own: Vec<&RunRow> = of_round.iter().copied().filter(own).collect();
        for scenario in scenarios(request, benchmark, &own) {
            let mut found = result(&subject, request.round, benchmark, scenario, &own);
            found.next = next(&found, &options);
            results.push(found);
        }
    }
    SubmissionStatus {
        round: request.round.name.clone(),
        category: request.category.system_type(),
        results,
    }
}

/// Returns the requested devices and benchmarks, and those of existing runs.
fn subjects(request: &StatusRequest<'_>, runs: &[&RunRow]) -> BTreeSet<DeviceBenchmark> {
    let is_requested = |row: &&&RunRow| {
        let mut devices = request.devices.iter();
        let mut benchmarks = request.benchmarks.iter();
        request.power.is_none_or(|power| power == power_of(row))
            && (request.devices.is_empty() || devices.any(|device| device.id == row.device))
            && (request.benchmarks.is_empty() || benchmarks.any(|benchmark| benchmark.name == row.benchmark))
    };
    let of_run = |row: &&RunRow| DeviceBenchmark {
        device_name: row
            .device_name
            .clone()
            .unwrap_or_else(|| row.device.as_str().to_owned()),
        device: row.device.clone(),
        benchmark: row.benchmark.clone(),
        is_max_q: power_of(row) == PowerSetting::MaxQ,
    };
    let mut subjects: BTreeSet<DeviceBenchmark> = runs.iter().filter(is_requested).map(of_run).collect();
    for device in request.devices {
        for benchmark in request.benchmarks {
            let is_there =
                |known: &DeviceBenchmark| known.device == device.id && known.benchmark == benchmark.name;
            if !subjects.iter().any(is_there) {
                subjects.insert(DeviceBenchmark {
                    device_name: device.name.clone(),
                    device: device.id.clone(),
                    benchmark: benchmark.name.clone(),
                    is_max_q: request.power == Some(PowerSetting::MaxQ),
                });
            }
        }
    }
    subjects
}

/// Returns the power setting of a run: MaxQ only in that state.
fn power_of(row: &RunRow) -> PowerSetting {
    let state = row.draft.spec.state.as_ref();
    match state.is_some_and(|state| state.name == PowerSetting::MaxQ.as_str()) {
        true => PowerSetting::MaxQ,
        false => PowerSetting::MaxP,
    }
}

/// Returns the required scenarios, and other scenarios that have a performance run.
fn scenarios(request: &StatusRequest<'_>, benchmark: &Benchmark, runs: &[&RunRow]) -> Vec<Scenario> {
    let required = request.round.required_scenarios(benchmark, request.category);
    let required = required.unwrap_or_default();
    let is_measured = |scenario: &Scenario| {
        runs.iter()
            .any(|row| row.scenario == *scenario && measures_performance(row))
    };
    let all = Scenario::ALL.into_iter();
    all.filter(|scenario| required.contains(scenario) || is_measured(scenario))
        .collect()
}

const fn measures_performance(row: &RunRow) -> bool {
    row.draft.spec.audit.is_none() && matches!(row.mode, Mode::PerformanceOnly | Mode::SubmissionRun)
}

const fn measures_accuracy(row: &RunRow) -> bool {
    row.draft.spec.audit.is_none() && matches!(row.mode, Mode::AccuracyOnly | Mode::SubmissionRun)
}

fn result(
    subject: &DeviceBenchmark,
    round: &Round,
    benchmark: &Benchmark,
    scenario: Scenario,
    runs: &[&RunRow],
) -> ResultStatus {
    let of_scenario = || runs.iter().copied().filter(move |row| row.scenario == scenario);
    let performance = PartStatus::of(of_scenario().filter(|row| measures_performance(row)), round);
    let measured = performance.measured_run();
    let measured = measured.and_then(|run| of_scenario().find(|row| row.id == run));
    // Both runs of a result have the same settings.
    let answers = of_scenario().filter(|row| {
        measures_accuracy(row) && measured.is_none_or(|measured| have_same_settings(row, measured))
    });
    let accuracy = PartStatus::of(answers, round);
    let audit = |test: &str| {
        let audits = |row: &&RunRow, performance: RunId| {
            let of = row.draft.spec.audit.as_ref();
            of.is_some_and(|of| of.test == test && of.performance == performance)
        };
        measured.map_or_else(PartStatus::missing, |measured| {
            PartStatus::of(of_scenario().filter(|row| audits(row, measured.id)), round)
        })
    };
    let audits = round.audits_of(benchmark).into_iter();
    ResultStatus {
        device: subject.device.clone(),
        device_name: subject.device_name.clone(),
        benchmark: benchmark.name.clone(),
        scenario,
        power: subject.is_max_q.then_some(PowerSetting::MaxQ),
        accuracy,
        performance,
        audits: audits.map(|test| (test.to_owned(), audit(test))).collect(),
        next: None,
    }
}

/// Returns the command that continues with a result. `options` are those of `run` that select the round and the category.
fn next(result: &ResultStatus, options: &str) -> Option<String> {
    if result.is_rehearsed() || result.parts().any(|part| part.state == PartState::Open) {
        return None;
    }
    if let (true, Some(performance)) = (result.needs_only_audits(), result.performance.run) {
        return Some(format!("regatta audit run --performance {performance}"));
    }
    let device = quote_for_shell_if_needed(&result.device_name);
    let benchmark = quote_for_shell_if_needed(&result.benchmark);
    let state = result
        .power
        .map_or_else(String::new, |power| format!(" --state {}", power.as_str()));
    Some(format!(
        "regatta run --device {device} --benchmark {benchmark} --submission{state}{options}"
    ))
}

/// Returns the options of `run` with which it measures for the requested round and category.
fn options(request: &StatusRequest<'_>, catalogue: &Catalogue) -> String {
    let round = &request.round.name;
    let is_newest = catalogue.round(None).is_ok_and(|newest| newest.name == *round);
    let mut options = String::new();
    if !is_newest {
        options.push_str(&format!(" --round {round}"));
    }
    if request.category != SystemCategory::default() {
        options.push_str(&format!(" --category {}", request.category));
    }
    options
}
