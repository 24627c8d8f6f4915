//! v4.1's way to find out whether samples were issued equally often: in the conf files beside the measurements, where
//! later checkers look into the log.

use super::{
    super::{
        Context, ScenarioPlace,
        accuracy::{self, Text},
    },
    Crash,
};

const CONFS: [&str; 2] = ["mlperf.conf", "user.conf"];

/// Whether a conf file of `place` says so, for a benchmark of which it is asked.
pub(super) fn in_conf(context: &Context<'_>, place: &ScenarioPlace) -> Result<bool, Crash> {
    let directory = place.below("measurements");
    // Here the directory's name stands for the benchmark.
    let rules = context.round.submission.benchmarks.get(&place.model);
    if place.division == "open" || !rules.is_some_and(|rules| rules.equal_issue) {
        return Ok(false);
    }
    let mut used = false;
    for name in CONFS {
        let path = format!("{directory}/{name}");
        if context.tree.exists(&path) {
            let text = accuracy::text(context, &path)?;
            let stated = setting(&text, place).map_err(|line| Crash(format!("{path}: `{line}`")))?;
            used = stated.unwrap_or(used);
        }
    }
    Ok(used)
}

/// What the first line about this benchmark and scenario says; the error is a line that ends the official program.
fn setting(text: &Text, place: &ScenarioPlace) -> Result<Option<bool>, String> {
    let benchmark = place.model.replace("-99.9", "").replace("-99", "");
    let is = |part: &str, name: &str| part == name || part == "*";
    for line in text.lines() {
        let line = line.replace([' ', '\n'], "");
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parts: Vec<_> = line.split('=').collect();
        let [key, value] = parts[..] else { return Err(line) };
        let names: Vec<_> = key.split('.').collect();
        let [model, scenario, setting] = names[..] else {
            return Err(line);
        };
        let here = is(model, &benchmark) && is(scenario, &place.scenario);
        let number = !value.is_empty() && value.chars().all(char::is_numeric);
        if here && setting == "sample_concatenate_permutation" && number {
            return Ok(Some(value.parse() == Ok(1)));
        }
    }
    Ok(None)
}
