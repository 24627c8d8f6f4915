//! Requirements of a round for a submission: files, fields, limits, names. This module holds values only. The submission crate has the
//! checks, and [`super::Checker`] has the differences between official checkers.

use std::{borrow::Cow, collections::BTreeMap};

use regatta_types::Scenario;
use serde::{Deserialize, Serialize};

use super::{BenchmarkRules, Checker, Endpoints, Seeds, SubmittedScenario};

/// Directory layout of a submission (`submission_rules.adoc`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Up to v5.1: `measurements/`, `compliance/` and `code/` beside `results/`.
    Classic,
    /// Since v6.0: measurements and tests within `results/`, and `src/`.
    ResultsOnly,
}

/// Spellings of a metric in `accuracy.txt` that a round's checkers accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccuracyForms {
    /// Up to v4.1: each metric in one spelling.
    Strict,
    /// v5.0: top-1 accuracy also in JSON's spelling.
    #[serde(rename = "loose-top1")]
    LooseTop1,
    /// Since v5.1: also quoted numbers, and mAP within a line.
    Loose,
}

/// A fallback rule that maps a directory name to a benchmark when no other rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelGuess {
    /// Substrings; any of them in the directory's name matches.
    pub contains: Vec<String>,
    /// The benchmark's name.
    pub model: String,
}

/// A measured result that also counts as the result of another scenario, on edge systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inference {
    /// The measured scenario.
    pub from: Scenario,
    /// The scenario that the result also counts for.
    pub to: Scenario,
}

/// Name suffixes of two accuracy variants: a result of the stricter one also counts for the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LowerAccuracy {
    /// Suffix of the stricter variant.
    pub from: String,
    /// Suffix of the other variant.
    pub to: String,
}

/// A round's submission rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// Directory layout.
    pub layout: Layout,
    /// Minimum of `effective_min_duration_ms`, in milliseconds.
    pub min_duration_ms: u64,
    /// The largest accuracy log that counts as truncated, in bytes.
    pub max_accuracy_log_bytes: u64,
    /// The largest file, in bytes.
    pub max_file_bytes: u64,
    /// Accepted spellings of metrics in `accuracy.txt`.
    pub accuracy_forms: AccuracyForms,
    /// Required files of a measurement directory, besides its JSON file.
    pub measurement_files: Vec<String>,
    /// Required fields of the measurement JSON.
    pub measurement_fields: Vec<String>,
    /// Path of the official checker's log below the submitter's directory, in layouts that define one.
    #[serde(default)]
    pub checker_log: Option<String>,
    /// Results that are inferred from results of other scenarios, on edge systems.
    #[serde(default)]
    pub inferences: Vec<Inference>,
    /// The name suffixes of accuracy variants: a result of the stricter one also counts for the other.
    #[serde(default)]
    pub lower_accuracy: Option<LowerAccuracy>,
    /// Required fields of the system description.
    pub system_fields: Vec<String>,
    /// System fields that must not be empty.
    pub system_fields_filled: Vec<String>,
    /// Further fields of a system that is reached over a network.
    pub network_fields: Vec<String>,
    /// Fields that a system with power measurement may have.
    pub power_fields: Vec<String>,
    /// TEST05's seeds, when the round's conf does not contain them (in v2.1, `audit.config` does).
    #[serde(default)]
    pub test05_seeds: Option<Seeds>,
    /// The key in the detail log whose value is a scenario's result.
    pub result_keys: BTreeMap<Scenario, String>,
    /// Benchmark of each alternative directory name.
    pub model_names: BTreeMap<String, String>,
    /// Fallback rules for directory names; the first match wins.
    pub model_guesses: Vec<ModelGuess>,
    /// The benchmarks, by official name.
    pub benchmarks: BTreeMap<String, BenchmarkRules>,
    /// Rules for results of the endpoints harness, when the round accepts them.
    #[serde(default)]
    pub endpoints: Option<Endpoints>,
    /// The official checkers of the round, the default first.
    pub checkers: Vec<Checker>,
}

impl Submission {
    /// Returns the benchmark that a directory name refers to. `own` is the submitter's `model_mapping.json` (open division).
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

    /// Returns the official name and the rules of the benchmark that `name` refers to. `None` when the round has no rules for it.
    #[must_use]
    pub fn rules_of<'a>(&'a self, name: &'a str) -> Option<(&'a str, &'a BenchmarkRules)> {
        static NO_OWN_NAMES: BTreeMap<String, String> = BTreeMap::new();
        let official = self.model_of(name, &NO_OWN_NAMES);
        self.benchmarks.get(official).map(|rules| (official, rules))
    }

    /// Returns the key in the detail log whose value is the result of a scenario. `rules` are those of the benchmark, if the round has any.
    #[must_use]
    pub fn result_key<'a>(
        &'a self,
        rules: Option<&'a BenchmarkRules>,
        scenario: Scenario,
    ) -> Option<&'a str> {
        let own = rules.and_then(|rules| rules.result_keys.get(&scenario));
        own.or_else(|| self.result_keys.get(&scenario))
            .map(String::as_str)
    }

    /// Whether the round has a benchmark of this official name, in any category.
    #[must_use]
    pub fn knows(&self, model: &str) -> bool {
        self.benchmarks.contains_key(model)
    }

    /// Returns the scenarios of the round's submissions. Interactive is included only when a benchmark has it.
    pub fn scenarios(&self) -> impl Iterator<Item = SubmittedScenario> {
        let interactive = SubmittedScenario::Interactive;
        let has = |rules: &BenchmarkRules| rules.datacenter_optional.contains(&interactive);
        let has = self.benchmarks.values().any(has);
        SubmittedScenario::ALL
            .into_iter()
            .filter(move |&scenario| has || scenario != interactive)
    }

    /// Returns the rules with one official checker's deviations applied.
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

    /// Returns the checker of `revision`, or the round's default for `None`.
    #[must_use]
    pub fn checker(&self, revision: Option<&str>) -> Option<&Checker> {
        match revision {
            None => self.checkers.first(),
            Some(name) => self.checkers.iter().find(|checker| checker.revision == name),
        }
    }
}

/// Replaces values of `table` by those of `over`, recursively in subtables. `false` removes a key.
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

/// Serialises seeds as decimal strings, because they exceed the 63 bits of a TOML integer.
pub(super) mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|_| de::Error::custom(format_args!("`{text}` is not a 64-bit number")))
    }
}
