//! The package's check of one scenario: six groups of checks, all of which always run.

use std::collections::BTreeMap;

use regatta_catalogue::round::{Layout, Trait};
use serde_json::Value;

use super::{
    super::{
        Context, Note, Row,
        crash::Crash,
        file_set::{self, FileSet},
        object,
        path_fault::PathFault,
        power,
        python::{self, Number},
        result,
        row::integer,
    },
    Faults, accuracy, compliance, endpoints,
    loaded::{EndpointsRun, Loaded},
    measurements,
    performance::{self, PackageRun},
    raised, system,
    walk::PackageJob,
};
use crate::check::{endpoints::Documents, run_log::RunLog};

/// The item, rows and notes of one scenario.
#[derive(Debug, Default)]
pub(super) struct PackageOutcome {
    /// The item's path: the detail log of the performance run.
    pub(super) path: String,
    pub(super) value: Option<String>,
    pub(super) rows: Vec<Row>,
    pub(super) notes: Vec<Note>,
    /// The reason why the official program ends here, if it does.
    pub(super) crash: Option<Crash>,
}

/// Checks a scenario.
pub(super) fn check(context: &Context<'_>, job: &PackageJob) -> PackageOutcome {
    let results = job.place.below("results");
    let mut outcome = PackageOutcome {
        path: format!("{results}/performance/run_1/mlperf_log_detail.txt"),
        ..PackageOutcome::default()
    };
    match load(context, job, results) {
        Ok(loaded) => judge(context, &loaded, &mut outcome),
        Err(crash) => outcome.crash = Some(crash),
    }
    outcome
}

/// Reads a log as the package's parser does: the first line must be a record, and every record must parse.
pub(super) fn log(context: &Context<'_>, path: &str) -> Result<RunLog, Crash> {
    let log = RunLog::read(context.tree, path).map_err(|error| Crash(format!("{path}: {}", error.0)))?;
    if let Some(bad) = log.refused.first() {
        return Err(Crash(format!("{path}, line {}: {}", bad.line, bad.text)));
    }
    if log.is_empty() || log.begins_with_record {
        Ok(log)
    } else {
        Err(Crash(format!("{path}, line 1: no record")))
    }
}

/// Loads the files that the package loads, in its order. The error is the reason why it ends with a traceback.
fn load<'a>(context: &Context<'_>, job: &'a PackageJob, results: String) -> Result<Loaded<'a>, Crash> {
    let classic = context.round.submission.layout == Layout::Classic;
    let tests = if classic {
        job.place.below("compliance")
    } else {
        results.clone()
    };
    let measurements_path = measurements::path(context, &job.place, classic)?;
    let performance = format!("{results}/performance/run_1/mlperf_log_detail.txt");
    let accuracy = format!("{results}/accuracy/mlperf_log_detail.txt");
    let optional = |path: &str| -> Result<Option<RunLog>, Crash> {
        context.tree.exists(path).then(|| log(context, path)).transpose()
    };
    let (performance_log, accuracy_log) = (optional(&performance)?, optional(&accuracy)?);
    let text = format!("{results}/accuracy/accuracy.txt");
    if context.tree.exists(&text) {
        super::super::accuracy::text(context, &text)?;
    }
    if context.tree.exists(&measurements_path) {
        object::read(context, &measurements_path)?;
    }
    let (performance, accuracy, endpoints) = match (performance_log, accuracy_log) {
        (Some(performance), Some(accuracy)) => (performance, accuracy, None),
        (None, None) => {
            let documents = Documents::read(context.tree, &results);
            let logs = documents.logs(context.round.submission.endpoints.as_ref())?;
            let run = EndpointsRun {
                effective: endpoints::effective(&logs.performance, &job.place.scenario)?,
                scores: logs.scores,
            };
            (logs.performance, logs.accuracy, Some(run))
        }
        (None, _) => return Err(Crash(format!("{performance} is missing"))),
        (_, None) => return Err(Crash(format!("{accuracy} is missing"))),
    };
    let mut test_logs = BTreeMap::new();
    for test in ["TEST01", "TEST04"] {
        let path = format!("{tests}/{test}/performance/run_1/mlperf_log_detail.txt");
        if let Some(log) = optional(&path)? {
            test_logs.insert(path, log);
        }
    }
    let directory = if endpoints.is_some() && job.place.scenario.eq_ignore_ascii_case("online") {
        "server"
    } else {
        &job.place.scenario
    };
    Ok(Loaded {
        job,
        results,
        tests,
        measurements_path,
        performance,
        accuracy,
        endpoints,
        test_logs,
        scenario: directory.parse().ok(),
        directory,
    })
}

fn judge(context: &Context<'_>, loaded: &Loaded<'_>, outcome: &mut PackageOutcome) {
    let Some(rules) = context.round.submission.benchmarks.get(&loaded.job.benchmark) else {
        let text = format!("{} is not a benchmark of this round", loaded.job.benchmark);
        let path = loaded.results.clone();
        outcome.notes.push(Note {
            path,
            text,
            fatal: true,
        });
        return;
    };
    let mut faults = Faults::new();
    if let Some(fault) = &loaded.job.set_fault {
        faults.push(PathFault::new(outcome.path.clone(), fault.clone()));
    }
    let run = PackageRun {
        context,
        rules,
        job: loaded.job,
        scenario: loaded.scenario,
        log: &loaded.performance,
        path: &outcome.path,
    };
    let measured = match &loaded.endpoints {
        Some(made) => endpoints::performance(run, &made.effective, &mut faults),
        None => performance::check(run, &mut faults),
    };
    let shown = accuracy::check(context, rules, loaded, &mut faults);
    system::check(context, loaded, &mut faults);
    let weights = measurements::check(context, loaded, &mut faults);
    let power = power_metric(context, loaded, &mut faults);
    compliance::check(context, rules, loaded, &mut faults);
    let passes = faults.is_empty();
    outcome.notes.extend(faults.into_iter().map(PathFault::into_note));
    let (Some(result), true) = (measured, passes) else {
        return;
    };
    outcome.value = Some(result.to_string());
    let shown = ShownValues {
        accuracy: shown,
        weights,
    };
    match row(context, loaded, result, shown) {
        Err(crash) => outcome.crash = Some(crash),
        Ok(row) => {
            let power_row = power.zip(loaded.scenario).map(|(metric, scenario)| Row {
                result: Number::Float(metric).to_string(),
                value: metric,
                units: result::power_unit(scenario, false).to_owned(),
                power: true,
                ..row.clone()
            });
            outcome.rows.push(row);
            outcome.rows.extend(power_row);
        }
    }
}

fn power_metric(context: &Context<'_>, loaded: &Loaded<'_>, faults: &mut Faults) -> Option<f64> {
    let path = |part: &str| format!("{}/performance/{part}", loaded.results);
    if !context.tree.exists(&path("power")) {
        return None;
    }
    for (part, set) in [
        ("run_1", FileSet::PERFORMANCE_WITH_POWER),
        ("ranging", FileSet::PERFORMANCE_WITH_POWER),
        ("power", FileSet::POWER),
    ] {
        faults.extend(
            file_set::fault(context, &path(part), set).map(|fault| PathFault::new(path(part), fault)),
        );
    }
    faults.extend(power::faults(context, &format!("{}/performance", loaded.results)));
    let metric = loaded
        .scenario
        .map(|scenario| power::metric(context, &path("run_1"), &loaded.performance, scenario));
    match metric {
        Some(Ok(Some(metric))) => Some(metric),
        Some(Err(error)) => {
            faults.push(raised(&path("run_1"), error));
            None
        }
        _ => {
            faults.push(PathFault::new(
                path("run_1"),
                "no power samples in the measured window".to_owned(),
            ));
            None
        }
    }
}

/// The values of a row that are shown as their files have them.
struct ShownValues {
    /// The accuracy metrics.
    accuracy: String,
    /// The weight data types.
    weights: String,
}

fn row(context: &Context<'_>, loaded: &Loaded<'_>, result: Number, shown: ShownValues) -> Result<Row, Crash> {
    let job = loaded.job;
    let json = &job.description;
    for key in ["number_of_nodes", "accelerators_per_node"] {
        if integer(json.get(key)).is_none() {
            return Err(Crash(format!(
                "{key} of system {} is not an integer",
                job.place.system
            )));
        }
    }
    let scenario = loaded
        .scenario
        .ok_or_else(|| Crash(format!("{} has no unit", job.place.scenario)))?;
    let directory = loaded.directory;
    let rules = context.round.submission.benchmarks.get(&job.benchmark);
    let has_power = context
        .tree
        .exists(&format!("{}/performance/power", loaded.results));
    let capacity = json.get("system_power_capacity").filter(|_| has_power);
    Ok(Row {
        submitter: job.place.submitter.clone(),
        division: job.place.division.clone(),
        system_type: python::text(json.get("system_type")),
        system: job.place.system.clone(),
        model: job.place.model.clone(),
        benchmark: job.benchmark.clone(),
        scenario: directory.to_owned(),
        result: result.to_string(),
        value: result.value(),
        units: rules.map_or_else(String::new, |rules| rules.unit(scenario).to_owned()),
        power: false,
        accuracy: shown.accuracy,
        location: format!("{}/performance/run_1", loaded.results),
        errors: 0,
        inferred: loaded.performance.text("effective_scenario") != Some(directory),
        has_power,
        compliant: true,
        weights: shown.weights,
        design_power: if context.checker.has(Trait::NameplatePower) {
            python::text(capacity.or(Some(&Value::Null)))
        } else {
            String::new()
        },
        system_json: std::sync::Arc::clone(json),
    })
}
