//! The package's checks of a scenario that the endpoints harness ran: fewer than of LoadGen's runs, and each fails for
//! itself.

use regatta_rules::{
    Scenario,
    round::{BenchmarkRules, Endpoints},
};
use serde_json::{Map, Value};

use super::{
    super::{
        Context, object,
        python::{Number, Raised},
        result,
    },
    Faults,
    performance::{self, Run},
    raised,
    scenario::Loaded,
};
use crate::check::run_log::RunLog;

/// The scenario as the official code goes on with it: the directory's name before the configuration's. The error is where
/// it ends.
pub(super) fn effective(log: &RunLog, directory: &str) -> Result<String, String> {
    let is = |name: &str| directory.eq_ignore_ascii_case(name);
    if is("singlestream") {
        return Ok("SingleStream".to_owned());
    }
    let given = log.value("effective_scenario");
    let text = given.and_then(|value| value.as_str());
    if is("interactive") || text.is_some_and(|text| text.eq_ignore_ascii_case("interactive")) {
        return Ok("Interactive".to_owned());
    }
    let text = text.ok_or("config.yaml has no type to take the scenario from")?;
    Ok(if text.eq_ignore_ascii_case("online") {
        "Server".to_owned()
    } else {
        text.to_owned()
    })
}

/// Judges the performance run; its result, where there is one.
pub(super) fn performance(run: Run<'_>, effective: &str, faults: &mut Faults) -> Option<Number> {
    let before = faults.len();
    let mut fault = |text: String| faults.push((run.path.to_owned(), text));
    // There is no seed of the sample library here.
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

/// The 99th percentile within the Server bound; language models have bounds of their own, which no edge scenario has.
fn latency(run: Run<'_>) -> Result<Option<String>, Raised> {
    let bound = run
        .rules
        .server_latency_ns
        .filter(|_| run.scenario == Some(Scenario::Server) && !run.rules.token_latencies);
    let Some(bound) = bound else { return Ok(None) };
    let found = Number::of(run.log.value("result_99.00_percentile_latency_ns"))?;
    Ok((found.value() > bound as f64)
        .then(|| format!("the 99th percentile is {found} ns, at most {bound} ns")))
}

/// The scenario that a text stands for in whatever case.
fn scenario_of(text: &str) -> Option<Scenario> {
    let mut all = Scenario::ALL.into_iter();
    all.find(|scenario| scenario.as_str().eq_ignore_ascii_case(text))
}

fn inference(run: Run<'_>, effective: &str) -> Result<Option<String>, Raised> {
    if effective.eq_ignore_ascii_case(&run.job.scenario) {
        return Ok(None);
    }
    match scenario_of(effective) {
        Some(from) => performance::inference(run, from),
        None => Ok(Some(format!(
            "{} cannot be inferred from {effective}",
            run.job.scenario
        ))),
    }
}

fn measured(run: Run<'_>, effective: &str) -> Result<Number, Raised> {
    let keys = allowed(run.context).map(|rules| &rules.result_keys);
    let key = scenario_of(effective).and_then(|scenario| keys?.get(&scenario));
    let key = key.ok_or_else(|| Raised::new(format!("{effective} has no result key")))?;
    let mut value = Number::float(run.log.value(key))?;
    // From here on the official code compares with heed to case.
    let exact = scenario_of(effective).filter(|scenario| scenario.as_str() == effective);
    if let Some(key) = exact.and_then(|scenario| run.rules.result_keys.get(&scenario)) {
        value = Number::float(run.log.value(key))?;
    }
    if matches!(exact, Some(Scenario::SingleStream | Scenario::MultiStream)) {
        value /= result::NANOSECONDS_PER_MILLISECOND;
    }
    let own = Number::Float(value);
    let (Some(from), Some(to)) = (scenario_of(effective), run.scenario) else {
        return Ok(own);
    };
    if from == to {
        return Ok(own);
    }
    match result::inferred(run.log, from, to)? {
        Some(inferred) if inferred.usable => Ok(inferred.value),
        Some(_) => Err(Raised::new("early stopping has no estimate to infer from")),
        None => Ok(own),
    }
}

/// The accuracy run's score, as the CSV gives it; what it must reach is not looked at for any edge benchmark.
pub(super) fn accuracy(scores: &[Map<String, Value>], path: &str, faults: &mut Faults) -> String {
    let mut scores = scores.iter().filter_map(|entry| entry.get("score"));
    match scores.find(|score| !score.is_null()) {
        None => {
            faults.push((path.to_owned(), "there is no accuracy score".to_owned()));
            String::new()
        }
        Some(score) => dumped(score)
            .replace(',', " ")
            .replace(['"', '{', '}'], "")
            .trim()
            .to_owned(),
    }
}

/// `json.dumps` of a value.
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

/// The audits: their files must say that they passed, where they are there; few must be.
pub(super) fn tests(context: &Context<'_>, rules: &BenchmarkRules, loaded: &Loaded<'_>, faults: &mut Faults) {
    let Some(endpoints) = allowed(context) else { return };
    for test in &rules.tests {
        let Some(name) = endpoints.audits.get(test) else {
            continue;
        };
        let path = format!("{}/audit/audit_{name}.json", loaded.tests);
        if !context.tree.exists(&path) {
            let required = endpoints.required_audits.contains(test)
                && endpoints.benchmarks.contains(&loaded.job.benchmark);
            if required {
                faults.push((path, "is missing".to_owned()));
            }
            continue;
        }
        let passed = object::read(context, &path).is_ok_and(|audit| {
            let is_test = audit.get("test").and_then(Value::as_str) == Some(name);
            is_test && audit.get("passed").is_some_and(super::super::python::truthy)
        });
        if !passed {
            faults.push((path, format!("does not say that {name} passed")));
        }
    }
}
