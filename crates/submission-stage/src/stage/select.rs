//! Selects the runs of each result: the newest valid run per system, benchmark, scenario and mode.
//!
//! It reads documents only.

use std::collections::BTreeMap;

use regatta_types::{DeviceId, Mode, Scenario, documents::PowerSetting};

use super::{Answers, Kind, StagingFinding, StagingRequest, SystemAnswers, run::Run};

/// The runs of one result: a scenario of a benchmark on a system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<'a> {
    pub(super) performance: &'a Run,
    /// The accuracy run, if there is one.
    pub(super) accuracy: Option<&'a Run>,
}

/// A system with its results.
#[derive(Debug)]
pub(super) struct SystemRuns<'a> {
    /// The system's name in directories and files, without the prefix of a rehearsal.
    pub(super) name: String,
    /// The results by benchmark name and scenario.
    pub(super) results: BTreeMap<(&'a str, Scenario), Chosen<'a>>,
}

/// Groups runs by system and result. Adds a finding for each run that cannot be assigned and each result without a run.
pub(super) fn choose<'a>(
    runs: &'a [Run],
    request: &StagingRequest<'_>,
    findings: &mut Vec<StagingFinding>,
) -> Vec<SystemRuns<'a>> {
    let mut systems: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        match system_of(run, request.answers, runs) {
            Some(name) => systems.entry(name).or_default().push(run),
            None => findings.push(StagingFinding::new(
                run.called(),
                match &run.spec.state {
                    Some(state) => format!(
                        "its device {} in state {} belongs to no system",
                        run.record.device_name, state.name
                    ),
                    None => format!("its device {} belongs to no system", run.record.device_name),
                },
                "name it in the `devices` of a [[system]] of the answers, or leave the run out",
            )),
        }
    }
    let systems = systems.into_iter();
    systems
        .map(|(name, runs)| {
            let results = results(&name, &runs, request, findings);
            SystemRuns { name, results }
        })
        .collect()
}

/// Returns the system that a run belongs to, by its device and the state of that.
fn system_of(run: &Run, answers: &Answers, runs: &[Run]) -> Option<String> {
    let (id, name) = (run.record.device.as_str(), run.record.device_name.as_str());
    let state = run.spec.state.as_ref().map(|state| state.name.as_str());
    let of_device =
        |system: &&SystemAnswers| system.devices.iter().any(|device| device == id || device == name);
    let mut of_state = answers.system.iter().filter(|system| {
        let named = system.state.as_deref().zip(state);
        named.is_some_and(|(named, state)| named.eq_ignore_ascii_case(state))
    });
    let mut of_any_state = answers.system.iter().filter(|system| system.state.is_none());
    if let Some(system) = of_state.find(of_device).or_else(|| of_any_state.find(of_device)) {
        return Some(system.name.clone());
    }
    match answers.system.as_slice() {
        // Without systems in the answers, each device is a system of its own name, and another one in MaxQ.
        [] if state == Some(PowerSetting::MaxQ.as_str()) => Some(format!("{name}_MaxQ")),
        [] => Some(name.to_owned()),
        [only] if only.devices.is_empty() && only.state.is_none() && of_one_device(runs) => {
            Some(only.name.clone())
        }
        _ => None,
    }
}

fn of_one_device(runs: &[Run]) -> bool {
    let mut devices: Vec<&DeviceId> = runs.iter().map(|run| &run.record.device).collect();
    devices.sort();
    devices.dedup();
    devices.len() <= 1
}

fn results<'a>(
    system: &str,
    runs: &[&'a Run],
    request: &StagingRequest<'_>,
    findings: &mut Vec<StagingFinding>,
) -> BTreeMap<(&'a str, Scenario), Chosen<'a>> {
    let mut found = BTreeMap::new();
    for run in runs {
        let key = (run.spec.benchmark.name.as_str(), run.spec.scenario);
        if found.contains_key(&key) || run.spec.audit.is_some() {
            continue;
        }
        let of = |mode: Mode, device: Option<&DeviceId>| {
            let fit = runs.iter().copied().filter(|run| {
                let same = (run.spec.benchmark.name.as_str(), run.spec.scenario) == key;
                same && run.is_of(mode) && device.is_none_or(|device| run.record.device == *device)
            });
            newest(fit, request)
        };
        let place = format!("system {system}, {}, {}", key.0, key.1);
        let Some(performance) = of(Mode::PerformanceOnly, None) else {
            findings.push(no_performance_run(place, key, of(Mode::SubmissionRun, None)));
            continue;
        };
        // Both runs of a result must come from the same device, because devices of one type can still differ.
        let accuracy = of(Mode::AccuracyOnly, Some(&performance.record.device));
        found.insert(
            key,
            Chosen {
                performance,
                accuracy,
            },
        );
        if accuracy.is_none() {
            findings.push(StagingFinding::new(
                place,
                "there is no accuracy run",
                format!(
                    "regatta run --benchmark {} --scenario {} --mode AccuracyOnly --device {}",
                    key.0, key.1, performance.record.device_name
                ),
            ));
        }
    }
    found
}

/// Reports a result without a performance run. `both` is its run of both modes, which cannot be used.
fn no_performance_run(place: String, key: (&str, Scenario), both: Option<&Run>) -> StagingFinding {
    let (what, modes) = match both {
        // The round's check requires a detail log whose mode is PerformanceOnly, and another one whose mode is AccuracyOnly.
        Some(both) => (
            format!(
                "{} has both modes in one log, and a submission has a log of each mode",
                both.called()
            ),
            "AccuracyOnly,PerformanceOnly",
        ),
        None => ("there is no performance run".to_owned(), "PerformanceOnly"),
    };
    let fix = format!(
        "regatta run --benchmark {} --scenario {} --mode {modes}",
        key.0, key.1
    );
    StagingFinding::new(place, what, fix)
}

/// Returns the newest valid run, or the newest run if none is valid. Staging then reports its faults. Ids sort by time.
pub(super) fn newest<'a>(
    runs: impl Iterator<Item = &'a Run>,
    request: &StagingRequest<'_>,
) -> Option<&'a Run> {
    runs.max_by_key(|run| {
        let submittable = request.kind == Kind::Rehearsal || run.not_submittable(request.round).is_empty();
        (run.faults().is_empty() && submittable, run.id())
    })
}
