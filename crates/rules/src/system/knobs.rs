//! The values of a `[[run]]`, typed: settings of engine and harness by LWIS's names where the meaning is the same, and what
//! LoadGen is told to expect.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Scenario;

/// Declares a table of optional values, each once.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
        }

        impl $name {
            /// The values that are set, by name, as text.
            fn texts(&self) -> BTreeMap<String, String> {
                let mut texts = BTreeMap::new();
                $(if let Some(value) = &self.$field {
                    texts.insert(stringify!($field).to_owned(), value.to_string());
                })*
                texts
            }
        }
    };
}

table! {
    /// Settings of engine and harness. What is not set is left to the engine.
    Knobs {
        /// Most samples in a batch, of engines with one kind of unit.
        batch_size: u32,
        /// Batches computed at the same time, of such engines.
        inference_streams: u32,
        /// Most samples in a batch of the GPU.
        gpu_batch_size: u32,
        /// Most samples in a batch of a DLA core.
        dla_batch_size: u32,
        /// Batches in flight on the GPU.
        gpu_copy_streams: u32,
        /// Batches in flight on each DLA core.
        dla_copy_streams: u32,
        /// Streams on which the GPU's batches are computed.
        gpu_inference_streams: u32,
        /// Streams on which a DLA core's batches are computed.
        dla_inference_streams: u32,
        /// Batches that a DLA core computes one after the other in one go.
        dla_loop_count: u32,
        /// DLA cores used at most.
        max_dlas: u32,
        /// The DLA core that engines are built for.
        dla_core: u32,
        /// Whether the GPU's work is launched as CUDA graphs.
        use_graphs: bool,
        /// Whether engines read and write the host's memory without a copy.
        use_direct_host_access: bool,
        /// Whether threads spin while their unit computes.
        use_spin_wait: bool,
        /// Whether every batch has a stream of its own.
        run_infer_on_copy_streams: bool,
        /// Bytes that the building of an engine may use.
        workspace_size: u64,
        /// `fp32`, `fp16` or `int8`.
        precision: String,
        /// Type of the engine's input.
        input_dtype: String,
        /// Layout of the engine's input.
        input_format: String,
        /// Server: microseconds that a worker waits for a fuller batch.
        deque_timeout_usec: u64,
        /// `together` or `first-free`.
        sharing: String,
        /// `direct` or `worker`.
        dispatch: String,
        /// `block` or `spin`.
        timing_wait: String,
    }
}

table! {
    /// What LoadGen is told to expect, by the names of its test settings.
    Expected {
        /// Offline: samples per second.
        offline_expected_qps: f64,
        /// Server: queries per second.
        server_target_qps: f64,
        /// SingleStream: nanoseconds of a query.
        single_stream_expected_latency_ns: u64,
        /// MultiStream: nanoseconds of a query.
        multi_stream_expected_latency_ns: u64,
        /// Queries that a run has at least.
        min_query_count: u64,
    }
}

impl Knobs {
    /// The settings by name, as an engine's settings are given.
    #[must_use]
    pub fn settings(&self) -> BTreeMap<String, String> {
        self.texts()
    }

    /// What cannot be, if anything: no count that is set is zero but those that count from it.
    pub(super) fn fault(&self) -> Option<String> {
        let from_zero = ["max_dlas", "dla_core", "deque_timeout_usec"];
        let zero = self
            .texts()
            .into_iter()
            .find(|(name, text)| text == "0" && !from_zero.contains(&name.as_str()));
        zero.map(|(name, _)| format!("`{name}` must be at least 1"))
    }
}

impl Expected {
    /// The lines of `user.conf` that say so, by the key behind `model.scenario`.
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

    /// What cannot be, if anything: a rate of another scenario, or one that is none.
    pub(super) fn fault(&self, scenario: Scenario) -> Option<String> {
        let own = match scenario {
            Scenario::Offline => "offline_expected_qps",
            Scenario::Server => "server_target_qps",
            Scenario::SingleStream => "single_stream_expected_latency_ns",
            Scenario::MultiStream => "multi_stream_expected_latency_ns",
        };
        let given = self.texts();
        if let Some(other) = given
            .keys()
            .find(|name| *name != own && *name != "min_query_count")
        {
            return Some(format!("`{other}` does not belong to {scenario}"));
        }
        let bad = |text: &String| {
            !text
                .parse::<f64>()
                .is_ok_and(|value| value.is_finite() && value > 0.0)
        };
        given
            .iter()
            .find(|(_, text)| bad(text))
            .map(|(name, _)| format!("`{name}` must be a positive number"))
    }
}
