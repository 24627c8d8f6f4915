//! Results of the endpoints harness (mlcommons/endpoints), which a round may accept instead of LoadGen's logs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AccuracyBound, SubmittedScenario};

/// A round's rules for such results, and the positions of a detail log's values in the harness's documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoints {
    /// Benchmarks that may be submitted with this harness.
    pub benchmarks: Vec<String>,
    /// The key whose value is a scenario's result.
    pub result_keys: BTreeMap<SubmittedScenario, String>,
    /// Tests, by the name in `audit/audit_<name>.json`.
    pub audits: BTreeMap<String, String>,
    /// The audits among these whose file is required when the benchmark has the test.
    pub required_audits: Vec<String>,
    /// Benchmarks whose score the official checker compares with the benchmark's bound.
    #[serde(default)]
    pub scores_compared: Vec<String>,
    /// Bounds of the mean number of output tokens, by the test that requires them.
    #[serde(default)]
    pub mean_output_tokens: BTreeMap<String, (f64, f64)>,
    /// The score that the rules require of a benchmark, in percent, when the checker does not compare it.
    pub scores: BTreeMap<String, AccuracyBound>,
    /// The runs that the rules prescribe in full, by benchmark.
    #[serde(default)]
    pub prescribed: BTreeMap<String, PrescribedRun>,
    /// Keys of a detail log, and the positions of their values.
    pub fields: BTreeMap<String, EndpointsField>,
}

/// A run whose data sets and settings the rules prescribe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrescribedRun {
    /// The path of the reference's configuration in a checkout of mlcommons/endpoints.
    pub reference: String,
    /// The number of requests of the performance run.
    pub requests: u64,
    /// The number of the performance run's responses that are scored.
    pub scored_responses: u64,
    /// The bound of the mean of the categories' scores, in percent.
    pub normalized: AccuracyBound,
    /// The categories of the accuracy data set.
    pub categories: BTreeMap<String, ScoreCategory>,
    /// The part of `config.yaml` that submitters do not choose. Lists have the same length there; other tables may have more keys.
    pub config: toml::Table,
    /// Paths in `config.yaml` that must have no value. Paths have dots between names; elements of lists have their index.
    #[serde(default)]
    pub unset: Vec<String>,
}

impl PrescribedRun {
    /// Returns the number of samples of the accuracy data set.
    #[must_use]
    pub fn accuracy_samples(&self) -> u64 {
        let groups = self.categories.values().flat_map(|category| &category.groups);
        groups.flat_map(BTreeMap::values).sum()
    }
}

/// A category of an accuracy data set. Its score is the mean of its groups' scores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreCategory {
    /// The number of samples of each subset, by group. A group's score is the mean of its subsets' scores.
    pub groups: Vec<BTreeMap<String, u64>>,
    /// Whether subsets are weighted by their samples.
    #[serde(default)]
    pub weighted: bool,
}

/// The positions of a value; the first one that exists applies. Paths have dots between names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointsField {
    /// Paths in `result_summary.json`, or `accuracy_results.json` for the accuracy run.
    #[serde(default)]
    pub results: Vec<String>,
    /// Paths in `config.yaml`.
    #[serde(default)]
    pub config: Vec<String>,
}
