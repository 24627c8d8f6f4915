//! Tests of runs that request DLA: what they build, and what they record where TensorRT drives no DLA.

use std::fs;

use regatta_test_support::{fake_tensorrt::FakeTensorrt, fixture::Fixture};
use regatta_types::{
    Mode, Scenario,
    documents::{EngineKind, RunSpec},
};

use super::{AGENT, EXEC, attempt, set, spec, write};
use crate::support::Ended;

/// A run with NVIDIA's settings for Offline on Orin.
fn requesting_dla(fixture: &Fixture) -> RunSpec {
    fs::write(fixture.path("model.onnx"), "the fake reads no model").unwrap();
    let mut spec = spec(
        fixture,
        EngineKind::Tensorrt,
        Scenario::Offline,
        Mode::AccuracyOnly,
    );
    for (name, value) in [
        ("precision", "fp16"),
        ("gpu_batch_size", "4"),
        ("gpu_copy_streams", "2"),
        ("dla_batch_size", "2"),
        ("dla_enqueue_count", "4"),
    ] {
        set(&mut spec, name, value);
    }
    spec
}

fn exec_over(fakes: &FakeTensorrt, fixture: &Fixture, spec: &RunSpec, version: &str) -> Ended {
    write(fixture, spec);
    let mut command = fakes.agent(AGENT, fixture.scratch(), &EXEC);
    let ended = Ended::from(command.env("FAKE_TRT_VERSION", version).output().unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    ended
}

/// Returns the plans in the cache, which describe themselves.
fn plans(fakes: &FakeTensorrt) -> Vec<String> {
    let engines = fs::read_dir(fakes.engines()).unwrap();
    let plans = engines.map(|entry| entry.unwrap().path().join("engine.plan"));
    let mut plans: Vec<String> = plans.filter_map(|plan| fs::read_to_string(plan).ok()).collect();
    plans.sort();
    plans
}

#[test]
fn run_builds_missing_dla_engines_with_the_memory_of_nvidias_harness() {
    let (fixture, fakes) = (Fixture::new(), FakeTensorrt::new());
    let mut spec = requesting_dla(&fixture);
    exec_over(&fakes, &fixture, &spec, "8502");
    let of_dla = |plan: &&String| plan.contains(" dla 0 ");
    let built = plans(&fakes);
    assert_eq!(built.len(), 2, "{built:?}");
    let dla: Vec<_> = built.iter().filter(of_dla).collect();
    assert!(
        dla.len() == 1 && dla[0].contains(" batch 2 to 2 ") && dla[0].contains(" sram 1048576 "),
        "{dla:?}"
    );

    set(&mut spec, "dla_sram_size", "524288");
    exec_over(&fakes, &fixture, &spec, "8502");
    let built = plans(&fakes);
    let of_other_size = built
        .iter()
        .filter(of_dla)
        .filter(|plan| plan.contains(" sram 524288 "));
    assert_eq!((built.len(), of_other_size.count()), (3, 1), "{built:?}");
}

#[test]
fn run_records_that_the_gpu_computed_without_dla() {
    let (fixture, fakes) = (Fixture::new(), FakeTensorrt::new());
    fakes.become_version("libnvinfer.so.10", &["10.3.0"]);
    let spec = requesting_dla(&fixture);
    let ended = exec_over(&fakes, &fixture, &spec, "101602");
    let built = plans(&fakes);
    assert!(built.len() == 1 && built[0].contains(" dla -1 "), "{built:?}");
    let reason = "TensorRT 10.16.2 finds no DLA core here: this version drives no DLA: 10.8 to 11.4.0 do not";
    let engine = attempt(&fixture).engine;
    assert!(
        engine.ends_with(&format!("; without DLA, which was requested: {reason})")),
        "{engine}"
    );
    assert!(
        ended.stderr.contains("WARN") && ended.stderr.contains(reason),
        "{}",
        ended.stderr
    );
}
