//! v4.1's check that samples were issued equally often: it reads the conf files beside the measurements.
//!
//! Later checkers read the log instead.

use super::{
    super::{
        Context, ScenarioPlace,
        accuracy::{self, PythonText},
    },
    Crash,
};

const CONFS: [&str; 2] = ["mlperf.conf", "user.conf"];

/// Returns whether a conf file of `place` turns the setting on, for a benchmark that requires it.
pub(super) fn in_conf(context: &Context<'_>, place: &ScenarioPlace) -> Result<bool, Crash> {
    let directory = place.below("measurements");
    // The official code uses the directory's name as the benchmark here.
    let rules = context.round.submission.benchmarks.get(&place.model);
    if place.division == "open" || !rules.is_some_and(|rules| rules.equal_issue) {
        return Ok(false);
    }
    let mut used = false;
    for name in CONFS {
        let path = format!("{directory}/{name}");
        if context.tree.exists(&path) {
            let text = accuracy::text(context, &path)?;
            let stated =
                setting(&text, place).map_err(|InvalidLine(line)| Crash(format!("{path}: `{line}`")))?;
            used = stated.unwrap_or(used);
        }
    }
    Ok(used)
}

/// A line of a conf file at which the official program ends.
struct InvalidLine(String);

/// Returns the setting from the first line for this benchmark and scenario.
fn setting(text: &PythonText, place: &ScenarioPlace) -> Result<Option<bool>, InvalidLine> {
    let benchmark = place.model.replace("-99.9", "").replace("-99", "");
    let is = |part: &str, name: &str| part == name || part == "*";
    for line in text.lines() {
        let line = line.replace([' ', '\n'], "");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parts: Vec<_> = line.split('=').collect();
        let [key, value] = parts[..] else {
            return Err(InvalidLine(line));
        };
        let names: Vec<_> = key.split('.').collect();
        let [model, scenario, setting] = names[..] else {
            return Err(InvalidLine(line));
        };
        let here = is(model, &benchmark) && is(scenario, &place.scenario);
        let number = !value.is_empty() && value.chars().all(char::is_numeric);
        if here && setting == "sample_concatenate_permutation" && number {
            return Ok(Some(value.parse() == Ok(1)));
        }
    }
    Ok(None)
}
