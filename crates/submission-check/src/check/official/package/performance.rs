//! The package's check of a performance run's detail log, including those of TEST01 and TEST04. Each check fails independently.

use regatta_catalogue::round::{BenchmarkRules, SubmittedScenario};
use regatta_mllog::read::Value;
use regatta_types::Scenario;

use super::{
    super::{
        Context,
        path_fault::PathFault,
        python::{Number, Raised, log_truthy},
        result,
    },
    Faults, raised, system,
    walk::PackageJob,
};
use crate::check::run_log::{RunLog, shown};

/// A run and the rules that apply to it.
#[derive(Clone, Copy)]
pub(super) struct PackageRun<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) rules: &'a BenchmarkRules,
    pub(super) job: &'a PackageJob,
    /// The scenario that the directory name denotes.
    pub(super) scenario: Option<SubmittedScenario>,
    pub(super) log: &'a RunLog,
    pub(super) path: &'a str,
}

/// The pairs of scenarios between which results may be inferred.
const INFERENCES: [(Scenario, SubmittedScenario); 3] = [
    (Scenario::SingleStream, SubmittedScenario::MultiStream),
    (Scenario::MultiStream, SubmittedScenario::Offline),
    (Scenario::SingleStream, SubmittedScenario::Offline),
];

/// Checks the run. Returns its result if no check failed.
pub(super) fn check(run: PackageRun<'_>, faults: &mut Faults) -> Option<Number> {
    let scenario = run.log.text("effective_scenario").and_then(|name| {
        Scenario::ALL
            .into_iter()
            .find(|scenario| scenario.as_str() == name)
    });
    let Some(scenario) = scenario else {
        faults.push(PathFault::new(
            run.path.to_owned(),
            "effective_scenario is none".to_owned(),
        ));
        return None;
    };
    let before = faults.len();
    for check in [
        samples(run),
        early_stopping(run, scenario),
        counts(run, scenario),
        duration(run),
        network(run),
        inference(run, scenario),
    ] {
        match check {
            Ok(None) => {}
            Ok(Some(fault)) => faults.push(PathFault::new(run.path.to_owned(), fault)),
            Err(error) => faults.push(raised(run.path, error)),
        }
    }
    faults.extend(seeds(run).map(|fault| PathFault::new(run.path.to_owned(), fault)));
    if run.rules.token_latencies && !log_truthy(run.log.value("requested_use_token_latencies")) {
        faults.push(PathFault::new(
            run.path.to_owned(),
            "use_token_latencies is not on".to_owned(),
        ));
    } else {
        // The scenario in the log counts, so Interactive's limits are not checked.
        match token_limits(run, scenario.into()) {
            Ok(fault) => faults.extend(fault.map(|fault| PathFault::new(run.path.to_owned(), fault))),
            Err(error) => faults.push(raised(run.path, error)),
        }
    }
    match measured(run, scenario) {
        Ok(result) => (faults.len() == before).then_some(result),
        Err(error) => {
            faults.push(raised(run.path, error));
            None
        }
    }
}

/// The message of a failed check, `None` if it passes, or the exception that it raises.
type Check = Result<Option<String>, Raised>;

fn samples(run: PackageRun<'_>) -> Check {
    let found = Number::of(run.log.value("effective_performance_sample_count"))?;
    let needed = run.rules.performance_samples;
    Ok((found.value() < needed as f64)
        .then(|| format!("performance samples {found}, at least {needed} are needed")))
}

pub(super) fn seeds(run: PackageRun<'_>) -> impl Iterator<Item = String> {
    let expected = run.context.round.seeds();
    let expected = expected.map(|seeds| {
        [
            ("qsl", seeds.qsl),
            ("sample_index", seeds.sample_index),
            ("schedule", seeds.schedule),
        ]
    });
    expected
        .into_iter()
        .flatten()
        .filter_map(move |(name, expected)| {
            let found = run.log.value(&format!("effective_{name}_rng_seed"));
            (found.and_then(Value::as_u64) != Some(expected)).then(|| {
                let found = found.map_or_else(|| "nothing".to_owned(), shown);
                format!("{name}_rng_seed is wrong: expected {expected}, found {found}")
            })
        })
}

fn early_stopping(run: PackageRun<'_>, scenario: Scenario) -> Check {
    if scenario == Scenario::Offline {
        return Ok(None);
    }
    if !log_truthy(run.log.value("early_stopping_met")) {
        return Ok(Some("early stopping was not met".to_owned()));
    }
    match run
        .rules
        .server_latency_ns
        .filter(|_| scenario == Scenario::Server)
    {
        None => Ok(None),
        Some(bound) => {
            let found = Number::of(run.log.value("effective_target_latency_ns"))?;
            Ok((found.value() > bound as f64)
                .then(|| format!("target latency {found} ns, at most {bound} ns")))
        }
    }
}

fn counts(run: PackageRun<'_>, scenario: Scenario) -> Check {
    if scenario != Scenario::Offline {
        return Ok(None);
    }
    if let Some(&needed) = run.rules.min_queries.get(&scenario) {
        let found = Number::of(run.log.value("effective_min_query_count"))?;
        if found.value() < needed as f64 {
            return Ok(Some(format!(
                "min_query_count {found}, at least {needed} is needed"
            )));
        }
    }
    let needed = run
        .rules
        .offline_samples_per_query
        .ok_or_else(|| Raised::new("the benchmark has no Offline sample count"))?;
    let found = Number::of(run.log.value("effective_samples_per_query"))?;
    let short = found.value() < needed as f64 && run.job.place.division == "closed";
    Ok(short.then(|| format!("samples_per_query {found}, at least {needed} are needed")))
}

/// Checks that a language model's token latencies are within the limits of the scenario, if it has limits.
pub(super) fn token_limits(run: PackageRun<'_>, scenario: SubmittedScenario) -> Check {
    if !run.rules.token_latencies || scenario.run() != Scenario::Server {
        return Ok(None);
    }
    let Some(limits) = run.rules.token_limits.get(&scenario) else {
        return Ok(Some(format!("there are no token limits of {scenario}")));
    };
    let first = Number::of(run.log.value("result_first_token_99.00_percentile_latency_ns"))?;
    let each = Number::of(run.log.value("result_time_per_output_token_99.00_percentile_ns"))?;
    let within = first.value() < limits.first_token_ns as f64 && each.value() < limits.per_token_ns as f64;
    Ok((!within).then(|| {
        format!(
            "the first token takes {first} ns and each further {each} ns, they must be below {} and {}",
            limits.first_token_ns, limits.per_token_ns
        )
    }))
}

pub(super) fn duration(run: PackageRun<'_>) -> Check {
    if run.rules.any_duration {
        return Ok(None);
    }
    let found = Number::of(run.log.value("effective_min_duration_ms"))?;
    let needed = run.context.round.submission.min_duration_ms;
    Ok((found.value() < needed as f64)
        .then(|| format!("min_duration {found} ms, at least {needed} ms is needed")))
}

pub(super) fn network(run: PackageRun<'_>) -> Check {
    let network =
        system::network(&run.job.description).ok_or_else(|| Raised::new("is_network is not text"))?;
    if let Some(wrong) = system::wrong_network(network, &run.job.place.division) {
        return Ok(Some(wrong));
    }
    let named = run
        .log
        .text("sut_name")
        .is_some_and(|name| name.contains("Network SUT"));
    Ok((network && !named).then(|| "the SUT's name does not say `Network SUT`".to_owned()))
}

pub(super) fn inference(run: PackageRun<'_>, from: Scenario) -> Check {
    let Some(to) = run.scenario else {
        return Ok(Some(format!(
            "{} is not a scenario to infer for",
            run.job.place.scenario
        )));
    };
    if from == to.run() {
        return Ok(None);
    }
    let kind = run
        .job
        .description
        .get("system_type")
        .and_then(serde_json::Value::as_str);
    if !kind.is_some_and(|kind| kind.contains("edge")) {
        return Ok(Some("results are inferred for edge systems only".to_owned()));
    }
    let allowed = INFERENCES.contains(&(from, to));
    Ok((!allowed).then(|| format!("{to} cannot be inferred from {from}")))
}

fn measured(run: PackageRun<'_>, from: Scenario) -> Result<Number, Raised> {
    let result = result::measured(run.context, run.rules, run.log, from)?;
    let Some(to) = run.scenario.filter(|to| to.run() != from) else {
        return Ok(Number::Float(result));
    };
    match result::inferred(run.log, from, to)? {
        None => Ok(Number::Float(result)),
        Some(inferred) if inferred.usable => Ok(inferred.value),
        Some(_) => Err(Raised::new("early stopping has no estimate to infer from")),
    }
}
