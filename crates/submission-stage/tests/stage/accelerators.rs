//! Tests of a run's GPUs in the system description, as its device's driver named them.

use std::fs;

use regatta_submission_stage::stage::{Answers, Kind};
use regatta_test_support::staging::{Parts, StagingFixture};
use regatta_types::{Division, EngineKind, Mode, engine_settings::EngineSettings};
use serde_json::{Value, json};

use crate::rehearsal;

/// The description after a performance run with these GPUs, the setting `gpus` among its settings, and an accuracy run on one.
fn described(gpus: &Value, named: Option<&str>) -> Value {
    let fixture = StagingFixture::new("v6.1");
    let on = |parts: &mut Parts, named: Option<&str>| {
        rehearsal::of_the_quickstart(parts);
        parts.spec.engine.kind = EngineKind::Tensorrt;
        let named = named.map(|named| ("gpus", named));
        parts.spec.engine.settings = EngineSettings::parse(EngineKind::Tensorrt, named).unwrap();
        parts.evidence["before"]["gpus"] = gpus.clone();
    };
    let runs = [
        fixture.run(1, Mode::PerformanceOnly, |parts| on(parts, named)),
        fixture.run(2, Mode::AccuracyOnly, |parts| on(parts, Some("0"))),
    ];
    let staged = fixture
        .stage(Division::Open, Kind::Rehearsal, &Answers::default(), &runs)
        .unwrap();
    let path = format!(
        "tree/open/{}/systems/{}.json",
        staged.submitter, staged.results[0].system
    );
    serde_json::from_str(&fs::read_to_string(fixture.at(&path)).unwrap()).unwrap()
}

fn gpu(name: &str, gib: u64, integrated: bool) -> Value {
    json!({
        "name": name, "compute_capability": "8.9", "multiprocessors": 58, "memory_bytes": gib << 30, "integrated": integrated,
    })
}

#[test]
fn description_lists_the_gpus_that_computed() {
    let [count, name, memory, link] = [
        "accelerators_per_node",
        "accelerator_model_name",
        "accelerator_memory_capacity",
        "accelerator_interconnect",
    ];
    let host = json!([
        gpu("NVIDIA L4", 22, false),
        gpu("NVIDIA L4", 22, false),
        gpu("T400", 4, false)
    ]);
    let unknown = "not stated (rehearsal)";
    // All are like the first, as the agent requires. The link between them is unknown.
    for named in [None, Some("all"), Some("0, 1")] {
        let system = described(&host, named);
        assert_eq!((&system[count], &system[name]), (&2.into(), &"NVIDIA L4".into()));
        assert_eq!(
            (&system[memory], &system[link]),
            (&"22.0 GiB usable".into(), &unknown.into())
        );
        assert_eq!(system["accelerator_memory_configuration"], unknown);
    }
    let one = described(&json!([gpu("T400", 4, false)]), Some("0"));
    assert_eq!(
        (&one[count], &one[name], &one[link]),
        (&1.into(), &"NVIDIA T400".into(), &"N/A".into())
    );
    let board = described(&json!([gpu("Orin", 61, true)]), None);
    assert_eq!((&board[count], &board[name]), (&1.into(), &"NVIDIA Orin".into()));
    assert_eq!(board[memory], "Shared with host");
    // An agent without a driver: no fact is invented.
    assert_eq!(described(&json!([]), None)[name], unknown);
}
