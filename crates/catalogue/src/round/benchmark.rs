//! A round's rules for one benchmark.

use std::collections::BTreeMap;

use regatta_types::Scenario;
use serde::{Deserialize, Serialize};

use super::SubmittedScenario;

/// A bound on a metric of the accuracy run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccuracyBound {
    /// The metric's official name, for example `acc` or `ROUGE1`.
    pub metric: String,
    /// The reference implementation's value, in the metric's own unit.
    pub reference: f64,
    /// The required fraction of the reference; `None` means 1.
    #[serde(default)]
    pub factor: Option<f64>,
}

impl AccuracyBound {
    /// Returns the bound: the product in IEEE double, as the official checkers compute it, so that comparisons agree to the bit.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.factor
            .map_or(self.reference, |factor| self.reference * factor)
    }
}

/// Upper bounds of the 99th percentiles of a language model's token latencies, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenLimits {
    /// Time to the first token (TTFT).
    pub first_token_ns: u64,
    /// Time per further token (TPOT).
    pub per_token_ns: u64,
}

/// The scenarios of a benchmark in one category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scenarios<'a> {
    /// Scenarios that must be submitted.
    pub required: &'a [Scenario],
    /// Scenarios that may be submitted.
    pub optional: &'a [SubmittedScenario],
}

impl Scenarios<'_> {
    /// Whether the benchmark may have a result of this scenario.
    #[must_use]
    pub fn has(&self, scenario: SubmittedScenario) -> bool {
        self.required.iter().any(|&one| scenario == one) || self.optional.contains(&scenario)
    }

    /// Whether the submission must have Server or Interactive (v5.1 and later).
    #[must_use]
    pub fn server_or_interactive(&self) -> bool {
        [SubmittedScenario::Server, SubmittedScenario::Interactive]
            .iter()
            .all(|one| self.optional.contains(one))
    }
}

/// A benchmark's rules in a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchmarkRules {
    /// Scenarios that an edge system must submit. Empty when the benchmark is not for such systems, as in the lists below.
    #[serde(default)]
    pub edge: Vec<Scenario>,
    /// Scenarios that a datacenter system must submit.
    #[serde(default)]
    pub datacenter: Vec<Scenario>,
    /// Scenarios that a datacenter system may submit in addition.
    #[serde(default)]
    pub datacenter_optional: Vec<SubmittedScenario>,
    /// Scenarios that a system of both categories must submit.
    #[serde(default)]
    pub datacenter_edge: Vec<Scenario>,
    /// Scenarios that a system of both categories may submit in addition.
    #[serde(default)]
    pub datacenter_edge_optional: Vec<SubmittedScenario>,
    /// Lower bounds on accuracy; each must be met.
    pub accuracy: Vec<AccuracyBound>,
    /// Lower bounds on accuracy, by scenario, for scenarios that have their own.
    #[serde(default)]
    pub accuracy_in: BTreeMap<SubmittedScenario, Vec<AccuracyBound>>,
    /// Upper bounds on accuracy.
    #[serde(default)]
    pub accuracy_at_most: Vec<AccuracyBound>,
    /// Minimum number of samples that performance runs draw from.
    pub performance_samples: u64,
    /// Samples of the accuracy run, when the round's checkers check the number.
    #[serde(default)]
    pub dataset_samples: Option<u64>,
    /// Samples of the accuracy run by scenario, for benchmarks whose scenarios differ.
    #[serde(default)]
    pub dataset_samples_in: BTreeMap<SubmittedScenario, u64>,
    /// Minimum number of samples of the Offline query.
    #[serde(default)]
    pub offline_samples_per_query: Option<u64>,
    /// Minimum number of queries. Scenarios with early stopping are exempt.
    #[serde(default)]
    pub min_queries: BTreeMap<Scenario, u64>,
    /// Whether the benchmark is one pass over its data, regardless of the duration.
    #[serde(default)]
    pub any_duration: bool,
    /// The Server scenario's latency bound, in nanoseconds.
    #[serde(default)]
    pub server_latency_ns: Option<u64>,
    /// The Interactive scenario's latency bound in nanoseconds, for benchmarks that bound the latency of the complete response.
    #[serde(default)]
    pub interactive_latency_ns: Option<u64>,
    /// Bounds of token latencies.
    #[serde(default)]
    pub token_limits: BTreeMap<SubmittedScenario, TokenLimits>,
    /// Keys of the result, when they differ from the round's.
    #[serde(default)]
    pub result_keys: BTreeMap<Scenario, String>,
    /// Units of the result, when they differ from the scenario's.
    #[serde(default)]
    pub units: BTreeMap<SubmittedScenario, String>,
    /// Whether latencies are in seconds instead of milliseconds.
    #[serde(default)]
    pub latency_in_seconds: bool,
    /// Names of the compliance tests.
    pub tests: Vec<String>,
    /// Largest accepted difference between TEST01's two accuracies in percent, by metric, when it is not the general limit.
    #[serde(default)]
    pub delta_percent: BTreeMap<String, f64>,
    /// Files beside the accuracy log: directory to file names without extension.
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
    /// Returns the scenarios for a system of this `system_type`; `None` when the benchmark is not for it.
    #[must_use]
    pub fn scenarios(&self, system_type: &str) -> Option<Scenarios<'_>> {
        let (required, optional) = match system_type {
            "edge" => (&self.edge, &[][..]),
            "datacenter" => (&self.datacenter, &self.datacenter_optional[..]),
            "datacenter,edge" | "edge,datacenter" => {
                (&self.datacenter_edge, &self.datacenter_edge_optional[..])
            }
            _ => return None,
        };
        (!required.is_empty()).then_some(Scenarios { required, optional })
    }

    /// Returns the scenarios that a system of this `system_type` must submit; `None` when the benchmark is not for it.
    #[must_use]
    pub fn required(&self, system_type: &str) -> Option<&[Scenario]> {
        self.scenarios(system_type).map(|scenarios| scenarios.required)
    }

    /// Returns the lower bounds on accuracy in a scenario.
    #[must_use]
    pub fn accuracy_in(&self, scenario: Option<SubmittedScenario>) -> &[AccuracyBound] {
        scenario
            .and_then(|scenario| self.accuracy_in.get(&scenario))
            .unwrap_or(&self.accuracy)
    }

    /// Returns the number of samples of a scenario's accuracy run.
    #[must_use]
    pub fn dataset_samples_in(&self, scenario: SubmittedScenario) -> Option<u64> {
        let own = self.dataset_samples_in.get(&scenario).copied();
        own.or(self.dataset_samples)
    }

    /// Returns the unit of a scenario's result.
    #[must_use]
    pub fn unit(&self, scenario: SubmittedScenario) -> &str {
        match self.units.get(&scenario) {
            Some(own) => own,
            None => Self::general_unit(scenario),
        }
    }

    /// Returns the unit of a scenario's result for benchmarks without their own unit.
    #[must_use]
    pub const fn general_unit(scenario: SubmittedScenario) -> &'static str {
        match scenario.run() {
            Scenario::SingleStream | Scenario::MultiStream => "Latency (ms)",
            Scenario::Offline => "Samples/s",
            Scenario::Server => "Queries/s",
        }
    }

    /// Returns the largest accepted difference between TEST01's two accuracies in `metric`, in percent. The general limit is 1, and 0.1
    /// for the 99.9 variants.
    #[must_use]
    pub fn delta_percent(&self, model: &str, metric: &str) -> f64 {
        let general = if model.contains("99.9") { 0.1 } else { 1.0 };
        self.delta_percent.get(metric).copied().unwrap_or(general)
    }
}
