//! What a submission of a round must hold: files, fields, limits, names. Values only; the checks that use them are in
//! the submission crate, and the official checkers' differences in [`super::Checker`].

use std::{borrow::Cow, collections::BTreeMap};

use regatta_types::Scenario;
use serde::{Deserialize, Serialize};

use super::{BenchmarkRules, Checker, Endpoints, Seeds, SubmittedScenario};

/// Where the parts of a submission lie (`submission_rules.adoc`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Up to v5.1: `measurements/`, `compliance/` and `code/` beside `results/`.
    Classic,
    /// Since v6.0: measurements and tests within `results/`, and `src/`.
    ResultsOnly,
}

/// The forms of a metric in `accuracy.txt` that a round's checkers read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccuracyForms {
    /// Up to v4.1: each metric in one form.
    Strict,
    /// v5.0: top-1 accuracy also in JSON's form.
    #[serde(rename = "loose-top1")]
    LooseTop1,
    /// Since v5.1: also numbers in quotes, and mAP within a line.
    Loose,
}

/// A name that stands for a benchmark when nothing else names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelGuess {
    /// Any of these within the directory's name.
    pub contains: Vec<String>,
    /// What it stands for.
    pub model: String,
}

/// A result that may stand for another one of an edge system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inference {
    /// The scenario that was measured.
    pub from: Scenario,
    /// The scenario that it also stands for.
    pub to: Scenario,
}

/// The endings of benchmark names of which one stands for the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LowerAccuracy {
    /// The stricter variant's.
    pub from: String,
    /// The other's.
    pub to: String,
}

/// A round's submission rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// Where the parts lie.
    pub layout: Layout,
    /// What `effective_min_duration_ms` must reach, in milliseconds.
    pub min_duration_ms: u64,
    /// The largest accuracy log that counts as truncated, in bytes.
    pub max_accuracy_log_bytes: u64,
    /// The largest file, in bytes.
    pub max_file_bytes: u64,
    /// How metrics are written in `accuracy.txt`.
    pub accuracy_forms: AccuracyForms,
    /// Files of a measurement directory, beside its JSON file.
    pub measurement_files: Vec<String>,
    /// Fields of the measurement JSON.
    pub measurement_fields: Vec<String>,
    /// Where the official checker's log lies, below the submitter's directory, in layouts that have a place for it.
    #[serde(default)]
    pub checker_log: Option<String>,
    /// What may be inferred from what, on edge systems.
    #[serde(default)]
    pub inferences: Vec<Inference>,
    /// Which variant of a benchmark also stands for which.
    #[serde(default)]
    pub lower_accuracy: Option<LowerAccuracy>,
    /// Fields of the system description.
    pub system_fields: Vec<String>,
    /// Those of them that must not be empty.
    pub system_fields_filled: Vec<String>,
    /// Further fields of a system that is reached over a network.
    pub network_fields: Vec<String>,
    /// Fields that a system with power measurement may have.
    pub power_fields: Vec<String>,
    /// TEST05's seeds, where the round's conf does not give them (v2.1: its `audit.config` does).
    #[serde(default)]
    pub test05_seeds: Option<Seeds>,
    /// The key in the detail log whose value is a scenario's result.
    pub result_keys: BTreeMap<Scenario, String>,
    /// Directory names that stand for a benchmark.
    pub model_names: BTreeMap<String, String>,
    /// What a name is taken for as a last resort, first match wins.
    pub model_guesses: Vec<ModelGuess>,
    /// The benchmarks, by official name.
    pub benchmarks: BTreeMap<String, BenchmarkRules>,
    /// Results of the endpoints harness, where the round takes them.
    #[serde(default)]
    pub endpoints: Option<Endpoints>,
    /// The official checkers of the round, the default first.
    pub checkers: Vec<Checker>,
}

impl Submission {
    /// The benchmark that a directory name stands for. `own` is the submitter's `model_mapping.json` (open division).
    #[must_use]
    pub fn model_of<'a>(&'a self, directory: &'a str, own: &'a BTreeMap<String, String>) -> &'a str {
        if self.knows(directory) {
            return directory;
        }
        if let Some(name) = self.model_names.get(directory).or_else(|| own.get(directory)) {
            return name;
        }
        let guess = self
            .model_guesses
            .iter()
            .find(|guess| {
                guess
                    .contains
                    .iter()
                    .any(|part| directory.contains(part.as_str()))
            })
            .map_or(directory, |guess| guess.model.as_str());
        self.model_names.get(guess).map_or(guess, String::as_str)
    }

    /// The rules of the benchmark that a name stands for, with its official name; `None` where the round has no rules for it.
    #[must_use]
    pub fn rules_of<'a>(&'a self, name: &'a str) -> Option<(&'a str, &'a BenchmarkRules)> {
        static NO_OWN_NAMES: BTreeMap<String, String> = BTreeMap::new();
        let official = self.model_of(name, &NO_OWN_NAMES);
        self.benchmarks.get(official).map(|rules| (official, rules))
    }

    /// Whether the round has a benchmark of this official name, in whatever category.
    #[must_use]
    pub fn knows(&self, model: &str) -> bool {
        self.benchmarks.contains_key(model)
    }

    /// The scenarios that the round's submissions have: Interactive only where a benchmark has it.
    pub fn scenarios(&self) -> impl Iterator<Item = SubmittedScenario> {
        let interactive = SubmittedScenario::Interactive;
        let has = |rules: &BenchmarkRules| rules.datacenter_optional.contains(&interactive);
        let has = self.benchmarks.values().any(has);
        SubmittedScenario::ALL
            .into_iter()
            .filter(move |&scenario| has || scenario != interactive)
    }

    /// The rules as the tables of one official checker have them.
    ///
    /// # Errors
    /// When the checker's `instead` does not fit these rules.
    pub fn as_known_to(&self, checker: &Checker) -> Result<Cow<'_, Self>, toml::de::Error> {
        if checker.instead.is_empty() {
            return Ok(Cow::Borrowed(self));
        }
        let mut table = toml::Table::try_from(self).map_err(serde::de::Error::custom)?;
        overlay(&mut table, &checker.instead);
        table.try_into().map(Cow::Owned)
    }

    /// The checker of a revision; the round's default without one.
    #[must_use]
    pub fn checker(&self, revision: Option<&str>) -> Option<&Checker> {
        match revision {
            None => self.checkers.first(),
            Some(name) => self.checkers.iter().find(|checker| checker.revision == name),
        }
    }
}

/// Puts the values of `over` in the place of those of `table`, below tables key by key.
fn overlay(table: &mut toml::Table, over: &toml::Table) {
    for (key, value) in over {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(over)) => overlay(below, over),
            (Some(_), toml::Value::Boolean(false)) => {
                table.remove(key);
            }
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Seeds exceed the 63 bits of a TOML integer, so they are written as texts.
pub(super) mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|_| de::Error::custom(format_args!("`{text}` is no 64-bit number")))
    }
}
