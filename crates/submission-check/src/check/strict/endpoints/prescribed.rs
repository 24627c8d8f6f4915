//! Compares `config.yaml` with the configuration that the rules prescribe, and with the configuration that the run states.

use serde_json::Value;

use super::EndpointsJudge;
use crate::check::{finding::Findings, rules};

/// The longest value that a message shows, in characters.
const MAX_SHOWN: usize = 80;
/// Settings that the summary repeats in `run_config`, and their places in `config.yaml`.
const REPEATED: [(&str, &str); 10] = [
    ("scheduler_random_seed", "settings.runtime.scheduler_random_seed"),
    (
        "dataloader_random_seed",
        "settings.runtime.dataloader_random_seed",
    ),
    ("load_pattern.type", "settings.load_pattern.type"),
    ("load_pattern.target_qps", "settings.load_pattern.target_qps"),
    (
        "load_pattern.target_concurrency",
        "settings.load_pattern.target_concurrency",
    ),
    ("warmup.enabled", "settings.warmup.enabled"),
    ("warmup.n_requests", "settings.warmup.n_requests"),
    ("warmup.salt", "settings.warmup.salt"),
    ("warmup.drain", "settings.warmup.drain"),
    ("warmup.warmup_random_seed", "settings.warmup.warmup_random_seed"),
];

impl EndpointsJudge<'_> {
    /// Checks the settings that the rules prescribe for the benchmark. Only the open division may change them.
    pub(super) fn prescribed_settings(&self, findings: &mut Findings) {
        let config = &self.documents.config;
        let Some(run) = self.prescribed.filter(|_| config.fault.is_none()) else {
            return;
        };
        let mut differences = Vec::new();
        // A table of TOML is always a JSON object.
        for (name, expected) in serde_json::to_value(&run.config)
            .unwrap_or_default()
            .as_object()
            .into_iter()
            .flatten()
        {
            compare(expected, config.value.get(name), name, &mut differences);
        }
        for name in &run.unset {
            if let Some(found) = at(&config.value, name) {
                differences.push(format!(
                    "{name} is {}, the rules leave it unset",
                    shown(Some(found))
                ));
            }
        }
        for text in differences {
            let fix = "use the reference's configuration, and repeat the run";
            findings.error(rules::ENDPOINTS_SETTINGS, &config.path, text, fix);
        }
    }

    /// Checks that the run had the settings of `config.yaml`.
    pub(super) fn settings_of_run(&self, findings: &mut Findings) {
        let summary = &self.documents.summary;
        if summary.fault.is_some() || self.documents.config.fault.is_some() {
            return;
        }
        let fix = "put the documents of one run there";
        let Some(run) = summary.value.get("run_config").filter(|run| run.is_object()) else {
            let text = "run_config is missing: the settings of the run are unknown";
            return findings.error(rules::ENDPOINTS_SETTINGS, &summary.path, text, fix);
        };
        for (stated, name) in REPEATED {
            let (stated_value, configured) = (at(run, stated), at(&self.documents.config.value, name));
            if stated_value != configured {
                let text = format!(
                    "run_config.{stated} is {}, {name} in config.yaml is {}",
                    shown(stated_value),
                    shown(configured)
                );
                findings.error(rules::ENDPOINTS_SETTINGS, &summary.path, text, fix);
            }
        }
    }
}

/// Adds a message for each expected value that is not there.
fn compare(expected: &Value, found: Option<&Value>, path: &str, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Some(Value::Object(found))) => {
            for (name, expected) in expected {
                compare(expected, found.get(name), &format!("{path}.{name}"), differences);
            }
        }
        (Value::Array(expected), Some(Value::Array(found))) if expected.len() == found.len() => {
            for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
                compare(expected, Some(found), &format!("{path}.{number}"), differences);
            }
        }
        (Value::Number(expected), Some(Value::Number(found))) if expected.as_f64() == found.as_f64() => {}
        (expected, Some(found)) if expected == found => {}
        _ => differences.push(format!(
            "{path} is {}, the rules require {expected}",
            shown(found)
        )),
    }
}

/// Returns the value at a path of names and indices, or `None` if it is missing or null.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let value = path.split('.').try_fold(value, |value, name| match value {
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    })?;
    (!value.is_null()).then_some(value)
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "missing".to_owned();
    };
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{} ...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
