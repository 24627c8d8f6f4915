//! What a round asks of one benchmark.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Scenario;

/// A bound on a metric of the accuracy run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccuracyBound {
    /// The metric's official name, such as `acc` or `ROUGE1`.
    pub metric: String,
    /// The reference implementation's value, in the metric's own unit.
    pub reference: f64,
    /// The share of it that is asked for; 1 when not given.
    #[serde(default)]
    pub factor: Option<f64>,
}

impl AccuracyBound {
    /// The bound: the product in IEEE double, as the official checkers compute it, so that equality agrees to the bit.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.factor
            .map_or(self.reference, |factor| self.reference * factor)
    }
}

/// A benchmark in a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchmarkRules {
    /// Scenarios that an edge system must submit.
    pub edge: Vec<Scenario>,
    /// Scenarios that a system of both categories must submit; empty where the benchmark is for edge systems alone.
    pub datacenter_edge: Vec<Scenario>,
    /// Lower bounds; each must be met.
    pub accuracy: Vec<AccuracyBound>,
    /// Upper bounds.
    #[serde(default)]
    pub accuracy_at_most: Vec<AccuracyBound>,
    /// Samples that performance runs draw from, at least.
    pub performance_samples: u64,
    /// Samples of the accuracy run, where the round's checkers know the number.
    #[serde(default)]
    pub dataset_samples: Option<u64>,
    /// Samples of the Offline query, at least.
    #[serde(default)]
    pub offline_samples_per_query: Option<u64>,
    /// Queries, at least; the scenarios that stop early are exempt.
    #[serde(default)]
    pub min_queries: BTreeMap<Scenario, u64>,
    /// The Server scenario's latency bound, in nanoseconds.
    #[serde(default)]
    pub server_latency_ns: Option<u64>,
    /// Keys of the result where they differ from the round's.
    #[serde(default)]
    pub result_keys: BTreeMap<Scenario, String>,
    /// Units of the result where they differ from the scenario's.
    #[serde(default)]
    pub units: BTreeMap<Scenario, String>,
    /// Compliance tests.
    pub tests: Vec<String>,
    /// How far TEST01's two accuracies may lie apart, in percent, where it is not the general limit.
    #[serde(default)]
    pub delta_percent: BTreeMap<String, f64>,
    /// Files beside the accuracy log: directory to names without extension.
    #[serde(default)]
    pub extra_accuracy_files: BTreeMap<String, Vec<String>>,
    /// Whether samples must be issued equally often (`sample_concatenate_permutation`).
    #[serde(default)]
    pub equal_issue: bool,
    /// Whether token latencies must be recorded (`use_token_latencies`).
    #[serde(default)]
    pub token_latencies: bool,
}

impl BenchmarkRules {
    /// The scenarios that a system of this `system_type` must submit; `None` where the benchmark is not for it, or
    /// where the type is none that this program carries rules for.
    #[must_use]
    pub fn required(&self, system_type: &str) -> Option<&[Scenario]> {
        match system_type {
            "edge" => Some(&self.edge).filter(|list| !list.is_empty()),
            "datacenter,edge" | "edge,datacenter" => {
                Some(&self.datacenter_edge).filter(|list| !list.is_empty())
            }
            _ => None,
        }
        .map(Vec::as_slice)
    }

    /// How far TEST01's two accuracies may lie apart in `metric`, in percent: a tenth for the 99.9 variants.
    #[must_use]
    pub fn delta_percent(&self, model: &str, metric: &str) -> f64 {
        let general = if model.contains("99.9") { 0.1 } else { 1.0 };
        self.delta_percent.get(metric).copied().unwrap_or(general)
    }
}
