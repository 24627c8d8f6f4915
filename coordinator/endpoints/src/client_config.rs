//! The client's configuration: the reference's of the checkout, with what the round prescribes and with the user's server.
//!
//! The reference alone fails the official checker: its seeds are not the round's, and its least duration is 0.

use std::{fs, path::Path};

use regatta_catalogue::round::{PrescribedRun, Seeds};
use serde_json::{Map, Value, json};
use yaml_rust2::{Yaml, YamlEmitter, YamlLoader, yaml::Hash};

use crate::{ClientCheckout, EndpointsError};

/// The least duration of a performance run that the official checker accepts.
const MIN_DURATION_MS: u64 = 600_000;

/// The server to measure, and what the client must know of it.
#[derive(Debug, Clone)]
pub struct ServerTarget {
    /// The server's address, such as `http://board:8080`.
    pub url: String,
    /// The model's name on the server. `None` for its only model.
    pub model: Option<String>,
    /// The directory of the model's tokenizer. Without it, the client counts no tokens.
    pub tokenizer: Option<String>,
    /// How long the client keeps an idle connection, in seconds. `None` is the client's default.
    pub max_idle_time: Option<f64>,
}

/// A change of a value in a rehearsal.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigChange {
    /// The value's place, with dots between names and the index of elements of lists.
    pub path: String,
    pub value: Value,
}

/// Returns the configuration of a run that writes to `report`.
pub(crate) fn configuration(
    run: &PrescribedRun,
    seeds: &Seeds,
    checkout: &ClientCheckout,
    target: &ServerTarget,
    report: &Path,
) -> Result<Value, EndpointsError> {
    let mut config = reference(&checkout.root().join(&run.reference))?;
    // A table of TOML is always a JSON object.
    merge(
        &mut config,
        &serde_json::to_value(&run.config).unwrap_or_default(),
    );
    let own = json!({
        "name": target.model,
        "model_params": { "name": target.model, "tokenizer_name": target.tokenizer },
        "settings": { "runtime": {
            "min_duration_ms": MIN_DURATION_MS,
            "scheduler_random_seed": seeds.schedule,
            "dataloader_random_seed": seeds.sample_index,
        } },
        "endpoint_config": { "endpoints": [target.url], "api_type": "openai" },
        "report_dir": report,
    });
    merge(&mut config, &own);
    if let Some(seconds) = target.max_idle_time {
        merge(
            &mut config,
            &json!({ "settings": { "client": { "max_idle_time": seconds } } }),
        );
    }
    for path in &run.unset {
        unset(&mut config, path);
    }
    Ok(config)
}

/// Makes a rehearsal's changes. A new name in an existing table is allowed: the client refuses those that it does not know.
pub(crate) fn change(config: &mut Value, changes: &[ConfigChange]) -> Result<(), EndpointsError> {
    for change in changes {
        let unknown = || EndpointsError::UnknownValue(change.path.clone());
        let (parent, name) = change.path.rsplit_once('.').ok_or_else(unknown)?;
        let pointer = format!("/{}", parent.replace('.', "/"));
        let parent = config.pointer_mut(&pointer).and_then(Value::as_object_mut);
        parent
            .ok_or_else(unknown)?
            .insert(name.to_owned(), change.value.clone());
    }
    Ok(())
}

/// Returns the configuration as YAML.
pub(crate) fn to_yaml(config: &Value) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = YamlEmitter::new(&mut text).dump(&yaml(config));
    text.push('\n');
    text
}

fn reference(path: &Path) -> Result<Value, EndpointsError> {
    let failed = |reason: String| EndpointsError::ReferenceConfig {
        path: path.to_owned(),
        reason,
    };
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let documents = YamlLoader::load_from_str(&text).map_err(|error| failed(error.to_string()))?;
    let config = documents.first().map(value).filter(Value::is_object);
    config.ok_or_else(|| failed("it is not a table".to_owned()))
}

/// Puts the values of `from` into `into`. Lists of equal length are merged element by element, and others replaced.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from))
            if into.len() == from.len() && from.iter().all(Value::is_object) =>
        {
            into.iter_mut()
                .zip(from)
                .for_each(|(into, from)| merge(into, from));
        }
        (into, from) => *into = from.clone(),
    }
}

fn unset(config: &mut Value, path: &str) {
    let Some((parent, name)) = path.rsplit_once('.') else {
        return;
    };
    let pointer = format!("/{}", parent.replace('.', "/"));
    if let Some(Value::Object(parent)) = config.pointer_mut(&pointer) {
        let _ = parent.remove(name);
    }
}

fn value(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Boolean(value) => json!(value),
        Yaml::Integer(value) => json!(value),
        Yaml::Real(text) => text
            .parse::<f64>()
            .map_or_else(|_| json!(text), |value| json!(value)),
        Yaml::String(text) => json!(text),
        Yaml::Array(elements) => elements.iter().map(value).collect(),
        Yaml::Hash(table) => {
            let entries = table
                .iter()
                .filter_map(|(name, entry)| Some((name.as_str()?.to_owned(), value(entry))));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        // The reference has no aliases.
        Yaml::Null | Yaml::BadValue | Yaml::Alias(_) => Value::Null,
    }
}

fn yaml(value: &Value) -> Yaml {
    match value {
        Value::Null => Yaml::Null,
        Value::Bool(value) => Yaml::Boolean(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => Yaml::Integer(value),
            // In decimal notation: PyYAML reads 1e-6 as a text. Seeds exceed 63 bits.
            (None, Some(value)) if number.is_f64() => Yaml::Real(decimal(value)),
            _ => Yaml::Real(number.to_string()),
        },
        Value::String(text) => Yaml::String(text.clone()),
        Value::Array(elements) => Yaml::Array(elements.iter().map(yaml).collect()),
        Value::Object(table) => {
            let entries = table
                .iter()
                .map(|(name, value)| (Yaml::String(name.clone()), yaml(value)));
            Yaml::Hash(entries.collect::<Hash>())
        }
    }
}

fn decimal(value: f64) -> String {
    let text = value.to_string();
    if text.contains('.') {
        text
    } else {
        format!("{text}.0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_keeps_large_seeds_and_small_times() {
        let config = json!({ "seed": 16_159_082_839_903_944_936_u64, "idle": 0.000_001, "temperature": 0.0, "on": "on" });
        let text = to_yaml(&config);
        assert!(text.contains("seed: 16159082839903944936\n"), "{text}");
        assert!(text.contains("idle: 0.000001\n"), "{text}");
        assert!(text.contains("temperature: 0.0\n"), "{text}");
        // Otherwise a reader of YAML 1.1 reads `true`.
        assert!(text.contains("\"on\""), "{text}");
    }

    #[test]
    fn a_change_needs_its_table() {
        let mut config = json!({ "datasets": [{ "samples": 5 }] });
        let set = |path: &str| ConfigChange {
            path: path.to_owned(),
            value: json!(1),
        };
        change(&mut config, &[set("datasets.0.samples")]).unwrap();
        assert_eq!(config["datasets"][0]["samples"], 1);
        let error = change(&mut config, &[set("settings.samples")]).unwrap_err();
        assert!(error.to_string().contains("settings.samples"), "{error}");
    }
}
