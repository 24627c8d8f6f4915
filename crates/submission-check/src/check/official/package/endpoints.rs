//! The package's checks of a scenario that the endpoints harness ran.
//!
//! There are fewer of them than for LoadGen runs. Each fails independently.

use regatta_catalogue::round::{BenchmarkRules, Endpoints, SubmittedScenario};
use serde_json::{Map, Value};

use super::{
    super::{
        Context,
        crash::Crash,
        object,
        path_fault::PathFault,
        python::{Number, Raised},
        result,
    },
    Faults,
    loaded::Loaded,
    performance::{self, PackageRun},
    raised,
};
use crate::check::run_log::RunLog;

/// Returns the scenario that the official code continues with: from the directory's name, else from the configuration.
///
/// The error is the reason why the official program ends.
pub(super) fn effective(log: &RunLog, directory: &str) -> Result<String, Crash> {
    let is = |name: &str| directory.eq_ignore_ascii_case(name);
    if is("singlestream") {
        return Ok("SingleStream".to_owned());
    }
    let stated = log.value("effective_scenario");
    let text = stated.and_then(|value| value.as_str());
    if is("interactive") || text.is_some_and(|text| text.eq_ignore_ascii_case("interactive")) {
        return Ok("Interactive".to_owned());
    }
    let text = text.ok_or_else(|| Crash("config.yaml has no type to take the scenario from".to_owned()))?;
    Ok(if text.eq_ignore_ascii_case("online") {
        "Server".to_owned()
    } else {
        text.to_owned()
    })
}

/// Checks the performance run. Returns its result if no check failed.
pub(super) fn performance(run: PackageRun<'_>, effective: &str, faults: &mut Faults) -> Option<Number> {
    let before = faults.len();
    let mut fault = |text: String| faults.push(PathFault::new(run.path, text));
    // The harness has no seed for the sample library.
    for wrong in performance::seeds(run).filter(|wrong| !wrong.starts_with("qsl")) {
        fault(wrong);
    }
    if !allowed(run.context).is_some_and(|rules| rules.benchmarks.contains(&run.job.benchmark)) {
        fault(format!(
            "{} may not be submitted from the endpoints harness",
            run.job.benchmark
        ));
    }
    for check in [
        latency(run),
        token_limits(run, effective),
        performance::duration(run),
        performance::network(run),
        inference(run, effective),
    ] {
        match check {
            Ok(None) => {}
            Ok(Some(text)) => fault(text),
            Err(error) => fault(error.0),
        }
    }
    match measured(run, effective) {
        Ok(result) => (faults.len() == before).then_some(result),
        Err(error) => {
            faults.push(raised(run.path, error));
            None
        }
    }
}

fn allowed<'a>(context: &Context<'a>) -> Option<&'a Endpoints> {
    context.round.submission.endpoints.as_ref()
}

/// Checks the 99th percentile against the scenario's limit. Language models have token limits instead.
fn latency(run: PackageRun<'_>) -> Result<Option<String>, Raised> {
    let bound = match run.scenario {
        _ if run.rules.token_latencies => None,
        Some(SubmittedScenario::Server) => run.rules.server_latency_ns,
        Some(SubmittedScenario::Interactive) => run.rules.interactive_latency_ns,
        _ => None,
    };
    let Some(bound) = bound else { return Ok(None) };
    let found = Number::of(run.log.value("result_99.00_percentile_latency_ns"))?;
    Ok((found.value() > bound as f64)
        .then(|| format!("the 99th percentile is {found} ns, at most {bound} ns")))
}

/// Checks token latencies if the scenario is spelt as the official code expects it.
fn token_limits(run: PackageRun<'_>, effective: &str) -> Result<Option<String>, Raised> {
    match scenario_of(effective).filter(|scenario| scenario.as_str() == effective) {
        Some(scenario) => performance::token_limits(run, scenario),
        None => Ok(None),
    }
}

/// Returns the scenario that a text denotes, ignoring case.
fn scenario_of(text: &str) -> Option<SubmittedScenario> {
    text.parse().ok()
}

fn inference(run: PackageRun<'_>, effective: &str) -> Result<Option<String>, Raised> {
    if effective.eq_ignore_ascii_case(&run.job.place.scenario) {
        return Ok(None);
    }
    match scenario_of(effective) {
        // An Interactive run is only accepted as Interactive. A Server run is also accepted as Interactive.
        Some(SubmittedScenario::Interactive) => Ok(Some(format!(
            "{} cannot be inferred from {effective}",
            run.job.place.scenario
        ))),
        Some(from) => performance::inference(run, from.run()),
        None => Ok(Some(format!(
            "{} cannot be inferred from {effective}",
            run.job.place.scenario
        ))),
    }
}

fn measured(run: PackageRun<'_>, effective: &str) -> Result<Number, Raised> {
    let keys = allowed(run.context).map(|rules| &rules.result_keys);
    let key = scenario_of(effective).and_then(|scenario| keys?.get(&scenario));
    let key = key.ok_or_else(|| Raised::new(format!("{effective} has no result key")))?;
    let mut value = Number::float(run.log.value(key))?;
    // From here on, the official code compares case-sensitively.
    let exact = scenario_of(effective).filter(|scenario| scenario.as_str() == effective);
    let loadgen = exact.filter(|&scenario| scenario != SubmittedScenario::Interactive);
    if let Some(scenario) = loadgen.map(SubmittedScenario::run) {
        if let Some(key) = run.rules.result_keys.get(&scenario) {
            value = Number::float(run.log.value(key))?;
        }
        value = result::in_unit(run.rules, scenario, value);
    }
    let own = Number::Float(value);
    let (Some(from), Some(to)) = (scenario_of(effective), run.scenario) else {
        return Ok(own);
    };
    if from.run() == to.run() {
        return Ok(own);
    }
    match result::inferred(run.log, from.run(), to)? {
        Some(inferred) if inferred.usable => Ok(inferred.value),
        Some(_) => Err(Raised::new("early stopping has no estimate to infer from")),
        None => Ok(own),
    }
}

/// Returns the accuracy run's score for the CSV. The package compares it with the target for a few benchmarks only.
pub(super) fn accuracy(
    context: &Context<'_>,
    (rules, loaded): (&BenchmarkRules, &Loaded<'_>),
    scores: &[Map<String, Value>],
    (path, faults): (&str, &mut Faults),
) -> String {
    let mut scores = scores.iter().filter_map(|entry| entry.get("score"));
    let Some(score) = scores.find(|score| !score.is_null()) else {
        faults.push(PathFault::new(
            path.to_owned(),
            "there is no accuracy score".to_owned(),
        ));
        return String::new();
    };
    let compared =
        allowed(context).is_some_and(|rules| rules.scores_compared.contains(&loaded.job.benchmark));
    let bound = rules.accuracy_in(loaded.scenario).first();
    if let Some(bound) = bound.filter(|_| compared && loaded.job.place.division != "open") {
        match score_of(score, &bound.metric) {
            Some(value) if value >= bound.value() => {}
            Some(value) => faults.push(PathFault::new(
                path.to_owned(),
                format!("accuracy is not met: {value}"),
            )),
            None => faults.push(PathFault::new(
                path.to_owned(),
                "the score is not a number".to_owned(),
            )),
        }
    }
    dumped(score)
        .replace(',', " ")
        .replace(['"', '{', '}'], "")
        .trim()
        .to_owned()
}

/// Returns a score as a number. Of several scores, it is the one with the metric's name or with a common name.
fn score_of(score: &Value, metric: &str) -> Option<f64> {
    let number = |value: &Value| match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let Value::Object(scores) = score else {
        return number(score);
    };
    let lower = metric.to_lowercase();
    let last = lower.rsplit('_').next().unwrap_or(&lower);
    [metric, &lower, last, "f1", "score", "accuracy"]
        .iter()
        .find_map(|name| number(scores.get(*name)?))
}

/// Formats a value like Python's `json.dumps`.
fn dumped(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            let list: Vec<_> = list.iter().map(dumped).collect();
            format!("[{}]", list.join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<_> = map
                .iter()
                .map(|(name, value)| format!("\"{name}\": {}", dumped(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (None, None, Some(value)) => super::super::python::float(value),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// Checks that existing audit files say that the audit passed. Few of them are required.
pub(super) fn tests(context: &Context<'_>, rules: &BenchmarkRules, loaded: &Loaded<'_>, faults: &mut Faults) {
    let Some(endpoints) = allowed(context) else { return };
    for test in &rules.tests {
        if let Some(&(low, high)) = endpoints.mean_output_tokens.get(test) {
            let path = &loaded.results;
            match Number::of(loaded.performance.value("mean_output_tokens")) {
                Ok(mean) if (low..=high).contains(&mean.value()) => {}
                Ok(mean) => {
                    let text =
                        format!("{test}: the mean of output tokens is {mean}, not from {low} to {high}");
                    faults.push(PathFault::new(path.clone(), text));
                }
                Err(error) => faults.push(raised(path, error)),
            }
        }
        let Some(name) = endpoints.audits.get(test) else {
            continue;
        };
        let path = format!("{}/audit/audit_{name}.json", loaded.tests);
        if !context.tree.exists(&path) {
            let required = endpoints.required_audits.contains(test)
                && endpoints.benchmarks.contains(&loaded.job.benchmark);
            if required {
                faults.push(PathFault::new(path, "is missing".to_owned()));
            }
            continue;
        }
        let passed = object::read(context, &path).is_ok_and(|audit| {
            let is_test = audit.get("test").and_then(Value::as_str) == Some(name);
            is_test && audit.get("passed").is_some_and(super::super::python::truthy)
        });
        if !passed {
            faults.push(PathFault::new(path, format!("does not say that {name} passed")));
        }
    }
}
