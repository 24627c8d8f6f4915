//! Checks the conf files of a result: `mlperf.conf` is the round's, and `user.conf` has the settings of the logged run.
//!
//! Lines that LoadGen ignores are ignored. Published results show two things that are not contradictions: an `mlperf.conf` from
//! before the round's last benchmarks, and target rates and latencies in `user.conf` that were tuned after the run.

use std::collections::BTreeMap;

use super::case::Case;
use crate::check::{
    finding::{Findings, Severity},
    rules,
    run_log::RunLog,
};

/// The largest conf file that is read, in bytes.
const MAX_CONF: u64 = 1 << 20;
/// The keys of `user.conf` that determine how long a run takes, and their records.
const LENGTHS: [(&str, &str); 4] = [
    ("min_duration", "requested_min_duration_ms"),
    ("max_duration", "requested_max_duration_ms"),
    ("min_query_count", "requested_min_query_count"),
    ("max_query_count", "requested_max_query_count"),
];

/// Checks the conf files of a scenario against the round and the log of its performance run.
pub(super) fn check(case: &Case<'_>, log: Option<&RunLog>, findings: &mut Findings) {
    let directory = case.measurements();
    if let Some(conf) = ConfFile::read(case, &format!("{directory}/mlperf.conf")) {
        conf.compare_with_round(case, findings);
    }
    if let (Some(conf), Some(log)) = (ConfFile::read(case, &format!("{directory}/user.conf")), log) {
        conf.compare_with_log(case, log, findings);
    }
}

/// A key of a conf file. `*` matches all models or scenarios.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ConfKey {
    model: String,
    scenario: String,
    name: String,
}

/// A value of a conf file.
struct ConfValue {
    line: u64,
    text: String,
}

/// A conf file's values.
struct ConfFile {
    path: String,
    values: BTreeMap<ConfKey, ConfValue>,
}

impl ConfFile {
    fn read(case: &Case<'_>, path: &str) -> Option<Self> {
        let bytes = case.context.tree.read(path, MAX_CONF).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let mut values = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let mut words = text.split_ascii_whitespace();
            let (Some(name), Some("="), Some(value)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            if let Some(key) = key(case, name) {
                let text = value.to_owned();
                values.insert(key, ConfValue { line, text });
            }
        }
        Some(Self {
            path: path.to_owned(),
            values,
        })
    }

    fn compare_with_round(&self, case: &Case<'_>, findings: &mut Findings) {
        let conf = &case.context.round.mlperf_conf;
        let of_round: BTreeMap<ConfKey, &str> = conf
            .iter()
            .filter_map(|(name, value)| Some((key(case, name)?, value.as_str())))
            .collect();
        let mut differences = Vec::new();
        for (key, ConfValue { line, text: value }) in &self.values {
            let (severity, text) = match of_round.get(key) {
                Some(expected) if same(expected, value) => continue,
                Some(expected) => {
                    // Seeds of another round are errors in the logs, if the runs used them.
                    let severity = match key.name.ends_with("_rng_seed") {
                        true => Severity::Warning,
                        false => Severity::Error,
                    };
                    (
                        severity,
                        format!("{} is {value}, the round's is {expected}", shown(key)),
                    )
                }
                None if applies(case, key) => (Severity::Error, format!("the round's has no {}", shown(key))),
                None => continue,
            };
            differences.push((severity, Some(*line), text));
        }
        for (key, value) in &of_round {
            if applies(case, key) && !self.values.contains_key(key) {
                let text = format!("{} = {value} is missing", shown(key));
                differences.push((Severity::Warning, None, text));
            }
        }
        for severity in [Severity::Error, Severity::Warning] {
            let mut of_severity = differences.iter().filter(|(of, ..)| *of == severity);
            let Some((_, line, text)) = of_severity.next() else {
                continue;
            };
            let text = match of_severity.count() {
                0 => text.clone(),
                more => format!("{text}, and {more} more differences"),
            };
            let fix = "add the mlperf.conf of the round's LoadGen, unmodified";
            findings.add(severity, rules::CONFS, (self.path.as_str(), *line), text, fix);
        }
    }

    fn compare_with_log(&self, case: &Case<'_>, log: &RunLog, findings: &mut Findings) {
        let seed = self
            .values
            .iter()
            .find(|(key, _)| key.name.ends_with("_rng_seed"));
        if let Some((key, value)) = seed.filter(|(key, _)| !key.name.starts_with("accuracy_log")) {
            let text = format!(
                "{} has no effect: LoadGen reads seeds from mlperf.conf only",
                shown(key)
            );
            let fix = "add the user.conf with which LoadGen ran, not its mlperf.conf";
            findings.warning(rules::CONFS, (self.path.as_str(), Some(value.line)), text, fix);
        }
        let Some(scenario) = log.text("effective_scenario") else {
            return;
        };
        for (name, record) in LENGTHS {
            let Some(ConfValue { line, text: value }) = self.find(case, scenario, name) else {
                continue;
            };
            if let (Ok(written), Some(logged)) = (value.parse::<f64>(), log.number(record))
                && written != logged
            {
                let text = format!("{name} is {value}, the log has {record} {logged}");
                let fix = "add the user.conf with which LoadGen ran";
                findings.error(rules::CONFS, (self.path.as_str(), Some(*line)), text, fix);
            }
        }
    }

    /// Returns the value that LoadGen uses for the benchmark in `scenario`.
    fn find(&self, case: &Case<'_>, scenario: &str, name: &str) -> Option<&ConfValue> {
        let benchmark = case.job.benchmark.as_str();
        [
            (benchmark, scenario),
            ("*", scenario),
            (benchmark, "*"),
            ("*", "*"),
        ]
        .into_iter()
        .find_map(|(model, scenario)| {
            self.values.get(&ConfKey {
                model: model.to_owned(),
                scenario: scenario.to_owned(),
                name: name.to_owned(),
            })
        })
    }
}

/// Splits a key, and replaces an alias of a model by the round's name of the benchmark. Names of models may have dots.
fn key(case: &Case<'_>, full: &str) -> Option<ConfKey> {
    let mut parts = full.rsplitn(3, '.');
    let (name, scenario, model) = (parts.next()?, parts.next()?, parts.next()?);
    let model = match model {
        // Submitters may name the model as their directory.
        model if model == case.job.place.model => case.job.benchmark.as_str(),
        // Names that only resemble the benchmark's may be those of its variants.
        model => case
            .context
            .round
            .submission
            .model_names
            .get(model)
            .map_or(model, String::as_str),
    };
    Some(ConfKey {
        model: model.to_owned(),
        scenario: scenario.to_owned(),
        name: name.to_owned(),
    })
}

/// Returns whether LoadGen reads the key in a run of this result.
fn applies(case: &Case<'_>, ConfKey { model, scenario, .. }: &ConfKey) -> bool {
    (model == "*" || *model == case.job.benchmark)
        && (scenario == "*" || scenario == case.scenario.run().as_str())
}

fn shown(
    ConfKey {
        model,
        scenario,
        name,
    }: &ConfKey,
) -> String {
    format!("{model}.{scenario}.{name}")
}

/// Returns whether two values are the same text or the same number.
fn same(one: &str, other: &str) -> bool {
    one == other
        || matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if one == other && one < 1e15)
}
