//! The performance that a `[[run]]` of a systems file configures LoadGen to expect. Its engine settings are in [`crate::engine_settings`].

use std::collections::BTreeMap;

use regatta_types::Scenario;
use serde::{Deserialize, Serialize};

/// Expected performance, by the names of LoadGen's test settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expected {
    /// Offline: samples per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offline_expected_qps: Option<f64>,
    /// Server: queries per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_target_qps: Option<f64>,
    /// SingleStream: nanoseconds per query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single_stream_expected_latency_ns: Option<u64>,
    /// MultiStream: nanoseconds per query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_stream_expected_latency_ns: Option<u64>,
    /// Minimum number of queries of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_query_count: Option<u64>,
}

impl Expected {
    /// Returns the corresponding lines of `user.conf`, by the key after `model.scenario`.
    #[must_use]
    pub fn conf(&self, scenario: Scenario) -> BTreeMap<String, String> {
        let milliseconds = |ns: u64| (ns as f64 / 1e6).to_string();
        let rate = match scenario {
            Scenario::Offline => self
                .offline_expected_qps
                .map(|qps| ("target_qps", qps.to_string())),
            Scenario::Server => self.server_target_qps.map(|qps| ("target_qps", qps.to_string())),
            Scenario::SingleStream => self
                .single_stream_expected_latency_ns
                .map(|ns| ("target_latency", milliseconds(ns))),
            Scenario::MultiStream => self
                .multi_stream_expected_latency_ns
                .map(|ns| ("target_latency", milliseconds(ns))),
        };
        let count = self
            .min_query_count
            .map(|count| ("min_query_count", count.to_string()));
        rate.into_iter()
            .chain(count)
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }

    /// Returns the reason why the values cannot be used in a scenario, if any. A rate may belong to another scenario, or not be a positive
    /// number.
    pub(super) fn fault(&self, scenario: Scenario) -> Option<String> {
        let rates = [
            (
                "offline_expected_qps",
                Scenario::Offline,
                self.offline_expected_qps,
            ),
            ("server_target_qps", Scenario::Server, self.server_target_qps),
            (
                "single_stream_expected_latency_ns",
                Scenario::SingleStream,
                self.single_stream_expected_latency_ns.map(|ns| ns as f64),
            ),
            (
                "multi_stream_expected_latency_ns",
                Scenario::MultiStream,
                self.multi_stream_expected_latency_ns.map(|ns| ns as f64),
            ),
        ];
        let set_rates = rates
            .into_iter()
            .filter_map(|(name, of, rate)| Some((name, of, rate?)));
        for (name, of, rate) in set_rates {
            if of != scenario {
                return Some(format!("`{name}` does not belong to {scenario}"));
            }
            if !(rate.is_finite() && rate > 0.0) {
                return Some(format!("`{name}` must be a positive number"));
            }
        }
        (self.min_query_count == Some(0)).then(|| "`min_query_count` must be a positive number".to_owned())
    }
}
