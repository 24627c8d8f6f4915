//! Results of the endpoints harness (mlcommons/endpoints), which a round may take instead of LoadGen's logs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AccuracyBound, SubmittedScenario};

/// What a round asks of such results, and where it finds the values of a detail log in the harness's documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoints {
    /// Benchmarks that may be submitted so.
    pub benchmarks: Vec<String>,
    /// The key whose value is a scenario's result.
    pub result_keys: BTreeMap<SubmittedScenario, String>,
    /// Tests by the name in `audit/audit_<name>.json`.
    pub audits: BTreeMap<String, String>,
    /// Those of them whose file must be there where the benchmark has the test.
    pub required_audits: Vec<String>,
    /// Benchmarks whose score the official checker compares with the benchmark's bound.
    #[serde(default)]
    pub scores_compared: Vec<String>,
    /// Between which two numbers the mean of output tokens must lie, by the test that says so.
    #[serde(default)]
    pub mean_output_tokens: BTreeMap<String, (f64, f64)>,
    /// What the score of a benchmark must reach by the rules, in percent, where the checker does not compare it.
    pub scores: BTreeMap<String, AccuracyBound>,
    /// Keys of a detail log, and where their values stand.
    pub fields: BTreeMap<String, EndpointsField>,
}

/// Where a value stands; the first place that has one counts. Paths have dots between names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointsField {
    /// In `result_summary.json`, or `accuracy_results.json` for the accuracy run.
    #[serde(default)]
    pub results: Vec<String>,
    /// In `config.yaml`.
    #[serde(default)]
    pub config: Vec<String>,
}
