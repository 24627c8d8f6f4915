//! Reads the documents of the endpoints harness (mlcommons/endpoints) into the keys of LoadGen's detail log.
//!
//! It follows `parsers/endpoints_parser.py` of the official checker. The checks interpret the values.

mod error;
mod parsed;
mod repeated_key;
mod yaml;

use regatta_catalogue::round::{Endpoints as Rules, EndpointsField};
use regatta_mllog::read::Value as LogValue;
use serde_json::{Map, Value};

use error::DocumentError;
pub(crate) use error::LogsError;
use parsed::Parsed;

use super::run_log::RunLog;
use crate::tree::Tree;

/// The largest document that is read, in bytes. A summary has a few kilobytes.
const MAX: u64 = 64 << 20;
const CONFIGS: [&str; 2] = ["config.yaml", "config.yml"];

/// One document of the harness.
#[derive(Debug)]
pub(crate) struct HarnessDocument {
    /// The actual or expected path.
    pub(crate) path: String,
    /// The contents, or an empty object if they cannot be read, with which the official parser continues.
    pub(crate) value: Value,
    /// The reason why the document cannot be read.
    pub(crate) fault: Option<String>,
    /// The message about a key that occurs twice. The value is the last one, as for the official parser.
    pub(crate) repeated: Option<String>,
}

impl HarnessDocument {
    /// Reads a JSON document.
    pub(crate) fn json(tree: &Tree, path: &str) -> Self {
        document(tree, path, json)
    }
}

/// The documents of a scenario.
#[derive(Debug)]
pub(crate) struct Documents {
    /// The document `performance/result_summary.json`.
    pub(crate) summary: HarnessDocument,
    /// The document `accuracy/accuracy_results.json`.
    pub(crate) accuracy: HarnessDocument,
    /// The document `config.yaml`.
    pub(crate) config: HarnessDocument,
}

/// The scenario's values, in the form that the checks use.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    pub(crate) performance: RunLog,
    pub(crate) accuracy: RunLog,
    /// The entries of `accuracy_scores`.
    pub(crate) scores: Vec<Map<String, Value>>,
}

impl Documents {
    /// Reads the documents of the scenario in `directory`.
    pub(crate) fn read(tree: &Tree, directory: &str) -> Self {
        let config = CONFIGS.map(|name| format!("{directory}/{name}"));
        let config = config.iter().find(|path| tree.exists(path)).unwrap_or(&config[0]);
        Self {
            summary: HarnessDocument::json(tree, &format!("{directory}/performance/result_summary.json")),
            accuracy: HarnessDocument::json(tree, &format!("{directory}/accuracy/accuracy_results.json")),
            config: document(tree, config, |bytes| {
                let text = std::str::from_utf8(bytes).map_err(|_| DocumentError::NotText)?;
                let mut parsed = yaml::read(text)?;
                if parsed.value.is_null() {
                    parsed.value = Value::Object(Map::new());
                }
                Ok(parsed)
            }),
        }
    }

    /// Extracts the values from the fields that `rules` name. The error is the reason why the official parser ends.
    pub(crate) fn logs(&self, rules: Option<&Rules>) -> Result<Logs, LogsError> {
        let performance = self.values(rules, &self.summary);
        let mut accuracy = self.values(rules, &self.accuracy);
        let scores = scores(&self.accuracy)?;
        if let Some(count) = accuracy_samples(&scores)? {
            let count = LogValue::Unsigned(count);
            accuracy.insert("effective_accuracy_sample_count".to_owned(), count.clone());
            accuracy
                .entry("qsl_reported_total_count".to_owned())
                .or_insert(count);
        }
        let mut logs = [performance, accuracy];
        for log in &mut logs {
            rate(log)?;
        }
        let [performance, accuracy] = logs;
        Ok(Logs {
            performance: RunLog::of(performance),
            accuracy: RunLog::of(accuracy),
            scores,
        })
    }

    fn values(&self, rules: Option<&Rules>, results: &HarnessDocument) -> Values {
        let fields = rules.into_iter().flat_map(|rules| &rules.fields);
        let found = fields.filter_map(|(key, field)| {
            let value = find(field, &results.value, &self.config.value)?;
            Some((key.clone(), kept(value)))
        });
        let mut values: Values = found.collect();
        if let (None, Some(count)) = (
            values.get("generated_query_count"),
            values.get("qsl_reported_total_count"),
        ) {
            let count = count.clone();
            values.insert("generated_query_count".to_owned(), count);
        }
        values
    }
}

type Values = std::collections::BTreeMap<String, LogValue>;

fn document(
    tree: &Tree,
    path: &str,
    parse: impl Fn(&[u8]) -> Result<Parsed, DocumentError>,
) -> HarnessDocument {
    let read = tree.read(path, MAX).map_err(DocumentError::Unreadable);
    let (parsed, fault) = match read.and_then(|bytes| parse(&bytes)) {
        Ok(parsed) => (Some(parsed), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let parsed = parsed.unwrap_or_else(|| Parsed {
        value: Value::Object(Map::new()),
        repeated: None,
    });
    HarnessDocument {
        path: path.to_owned(),
        value: parsed.value,
        fault,
        repeated: parsed.repeated,
    }
}

fn json(bytes: &[u8]) -> Result<Parsed, DocumentError> {
    let value = serde_json::from_slice(bytes).map_err(DocumentError::NotJson)?;
    Ok(Parsed {
        value,
        repeated: repeated_key::find(bytes),
    })
}

fn find<'a>(field: &EndpointsField, results: &'a Value, config: &'a Value) -> Option<&'a Value> {
    let results = field.results.iter().filter_map(|path| nested(results, path));
    let config = field.config.iter().filter_map(|path| nested(config, path));
    results.chain(config).next()
}

/// Returns the value at a path of names separated by dots.
///
/// Names may contain dots (`99.9`), so the longest existing name is used at each level. A last `.0` may be missing from the name.
/// Null and empty collections count as missing.
fn nested<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let parts: Vec<_> = path.split('.').collect();
    let mut current = value;
    let mut taken = 0;
    while taken < parts.len() {
        let Value::Object(map) = current else {
            let rest = parts.get(taken..).unwrap_or_default();
            let counts = rest == ["0"] && !current.is_array() && !current.is_null() && taken > 0;
            return counts.then_some(current);
        };
        let found = (taken + 1..=parts.len()).rev().find_map(|end| {
            let name = parts.get(taken..end)?.join(".");
            Some((end, map.get(&name)?))
        });
        (taken, current) = found?;
    }
    let empty = match current {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    (!empty).then_some(current)
}

fn kept(value: &Value) -> LogValue {
    match value {
        Value::Null => LogValue::Null,
        Value::Bool(value) => LogValue::Bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => LogValue::Unsigned(value),
            (None, Some(value)) => LogValue::Signed(value),
            (None, None) => LogValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => LogValue::Text(text.clone()),
        Value::Array(list) => LogValue::List(list.iter().map(kept).collect()),
        Value::Object(map) => LogValue::Map(
            map.iter()
                .map(|(name, value)| (name.clone(), kept(value)))
                .collect(),
        ),
    }
}

fn scores(accuracy: &HarnessDocument) -> Result<Vec<Map<String, Value>>, LogsError> {
    let path = || accuracy.path.clone();
    let Value::Object(results) = &accuracy.value else {
        return Err(LogsError::NotAnObject { path: path() });
    };
    let list = match results.get("accuracy_scores") {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(LogsError::ScoresAreNoList { path: path() }),
    };
    let entries = list.iter().map(|entry| match entry {
        Value::Object(entry) => Ok(entry.clone()),
        _ => Err(LogsError::ScoreIsNoObject { path: path() }),
    });
    entries.collect()
}

/// Returns the number of samples in the accuracy data sets, without entries that score a performance data set.
fn accuracy_samples(scores: &[Map<String, Value>]) -> Result<Option<u64>, LogsError> {
    let mut sum = None;
    for score in scores {
        let kind = score.get("dataset_type").filter(|kind| !kind.is_null());
        if kind.is_some_and(|kind| kind != "accuracy") {
            continue;
        }
        let total = score.get("total_samples").filter(|total| !total.is_null());
        let issued = score
            .get("response_counts")
            .and_then(|counts| counts.get("issued"));
        let Some(count) = total.or(issued.filter(|issued| !issued.is_null())) else {
            continue;
        };
        let count = count
            .as_u64()
            .ok_or_else(|| LogsError::SampleCount(count.clone()))?;
        sum = Some(sum.unwrap_or(0) + count);
    }
    Ok(sum)
}

/// Adds the rate as queries divided by duration, if the documents do not have it.
fn rate(values: &mut Values) -> Result<(), LogsError> {
    let number = |key: &str| values.get(key).filter(|value| value.as_f64() != Some(0.0));
    let (Some(duration), Some(count), Some(scenario)) = (
        number("generated_query_duration"),
        number("generated_query_count"),
        values.get("effective_scenario"),
    ) else {
        return Ok(());
    };
    let scenario = scenario.as_str().ok_or(LogsError::TypeIsNoText)?;
    let key = if scenario.eq_ignore_ascii_case("offline") {
        "result_samples_per_second"
    } else {
        "result_completed_samples_per_sec"
    };
    let rate = count
        .as_f64()
        .zip(duration.as_f64())
        .map(|(count, duration)| count / (duration / 1e9));
    let rate = rate.ok_or(LogsError::RateIsNoNumber)?;
    values.entry(key.to_owned()).or_insert(LogValue::Float(rate));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::nested;

    #[test]
    fn the_longest_name_wins_at_each_level() {
        let value = json!({
            "latency": { "p": { "99.9": 1, "99.0": null, "50": 3, "97": [] } },
            "latency.avg": 5, "n": 7,
        });
        for (path, expected) in [
            ("latency.p.99.9", Some(1)),
            ("latency.p.99.0", None),
            ("latency.p.50.0", Some(3)),
            ("latency.p.97.0", None),
            ("latency.avg", Some(5)),
            ("n", Some(7)),
            ("n.0", Some(7)),
            ("n.x", None),
            ("", None),
        ] {
            assert_eq!(nested(&value, path).and_then(Value::as_u64), expected, "{path}");
        }
    }
}
