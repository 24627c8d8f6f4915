//! A spec for tests of what depends on engine settings.

use std::collections::BTreeMap;

use regatta_catalogue::catalogue::Catalogue;
use regatta_types::documents::{Document as _, RunSpec};

/// Creates the spec of an Offline run on TensorRT with these engine settings.
pub(crate) fn tensorrt_spec(benchmark: &str, settings: &[(&str, &str)]) -> RunSpec {
    let catalogue = Catalogue::read(None).unwrap();
    let benchmark = serde_json::to_value(catalogue.benchmark(benchmark).unwrap()).unwrap();
    let settings: BTreeMap<_, _> = settings.iter().copied().collect();
    let spec = serde_json::json!({
        "schema": 1, "run": "018f4e2a-7b6c-7d3e-8f00-112233445566", "device": "0123456789abcdef0123456789abcdef",
        "created": "2026-01-01T00:00:00Z", "round": "v6.1", "benchmark": benchmark, "scenario": "Offline",
        "mode": "PerformanceOnly", "engine": { "kind": "tensorrt", "settings": settings }, "loadgen": "native",
        "length": "full", "conf": { "mlperf_conf": "", "user_conf": "", "audit_config": null }, "delivery": "after",
    });
    RunSpec::from_json(spec.to_string().as_bytes()).unwrap()
}
