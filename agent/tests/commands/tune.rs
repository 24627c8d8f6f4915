//! Tests of `tune` through the binary: its file when it ends, when it is killed, and when nothing runs.

use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use regatta_catalogue::system::System;
use regatta_test_support::{fake_tensorrt::FakeTensorrt, fixture::Fixture};
use regatta_types::{Scenario, documents::EngineKind};

use crate::support::{self, Ended, agent, place::Place};

/// The arguments of every search.
const TUNE: &str = "tune --benchmark pixels --benchmark-file benchmark.toml --output found.toml --force";
/// A modelled accelerator, and its number of samples.
const UNITS: &str = "--set sim_units=gpu=300+20";
const COUNTS: &str = "--total-samples 64 --performance-samples 64";

fn words<'a>(parts: &[&'a str]) -> Vec<&'a str> {
    parts
        .iter()
        .flat_map(|part| part.split_ascii_whitespace())
        .collect()
}

fn tune(fixture: &Fixture, more: &[&str]) -> Ended {
    agent(fixture.scratch(), &words(&[&[TUNE][..], more].concat()))
}

fn found(fixture: &Fixture) -> (System, String) {
    let text = fs::read_to_string(fixture.path("found.toml")).unwrap();
    (System::from_toml(&text).unwrap(), text)
}

#[test]
fn a_search_leaves_a_systems_file_that_bench_takes() {
    let fixture = Fixture::new();
    let second = support::MLPERF_CONF.replace("target_latency = 10000", "target_latency = 1000");
    assert_ne!(second, support::MLPERF_CONF);
    fs::write(fixture.path("second.conf"), second).unwrap();
    let sim = "--engine sim --scenario Offline,Server --limit 3s --name boat --mlperf-conf second.conf";
    let ended = tune(&fixture, &[sim, UNITS, "--set gpu_copy_streams=1", COUNTS]);
    assert!(
        ended.stderr.contains("pixels Offline trial 1: "),
        "{}",
        ended.stderr
    );
    let (system, text) = found(&fixture);
    let unforced = TUNE.replace(" --force", "");
    let refused = agent(
        fixture.scratch(),
        &words(&[&unforced, "--engine sim --scenario Offline"]),
    );
    assert!(
        refused.code == 2 && refused.stderr.contains("--force"),
        "{refused:?}"
    );
    // On a machine so busy that six queries take a second, there is no rate for Server. The output says so, which is not a
    // failure.
    let busy = ended.code == 1 && text.contains("does not keep the latency bound at any tried rate");
    assert!(ended.code == 0 || busy, "{ended:?}");
    assert_eq!(system.name, "boat");
    for (run, scenario) in system.runs.iter().zip([Scenario::Offline, Scenario::Server]) {
        assert_eq!(
            (run.engine, run.scenario, run.derived),
            (EngineKind::Sim, scenario, false)
        );
        assert!(
            run.settings.gpu_batch_size.is_some() && run.settings.gpu_copy_streams.is_none(),
            "{run:?}"
        );
        assert!(run.result.unwrap() > 0.0);
        let measured = run.source.measured.as_deref().unwrap();
        assert!(
            measured.contains("gpu_copy_streams=1 sim_units=gpu=300+20"),
            "{measured}"
        );
        assert!(
            measured.contains("a modelled accelerator, not a measurement"),
            "{measured}"
        );
    }
    assert_eq!(system.runs.len(), if busy { 1 } else { 2 }, "{text}");
    let trials = text.lines().filter(|line| line.contains("  coarse "));
    assert!(trials.count() >= 2 && text.contains("# chosen: "), "{text}");

    let sim = bench_words(&fixture, "sim", "found.toml");
    let bench = words(&[&[BENCH, COUNTS][..], &sim].concat());
    let ended = agent(fixture.scratch(), &bench);
    assert!(
        ended.stdout.contains("  system        boat (regatta-agent"),
        "{ended:?}"
    );
}

#[test]
fn a_search_that_is_killed_leaves_the_best_so_far() {
    let fixture = Fixture::new();
    let mut search = Command::new(env!("CARGO_BIN_EXE_regatta-agent"))
        .current_dir(fixture.scratch())
        .args(words(&[TUNE, "--engine sim --scenario Offline", UNITS, COUNTS]))
        .env("TMPDIR", fixture.scratch())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !fixture.path("found.toml").exists() && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(20));
    }
    search.kill().unwrap();
    search.wait().unwrap();
    let (system, text) = found(&fixture);
    assert!(
        system.partial.unwrap().contains("was not finished when"),
        "{text}"
    );
    assert_eq!(system.runs.len(), 1, "{text}");
}

#[test]
fn failed_trials_of_tune_state_their_reason() {
    let fixture = Fixture::new();
    // The CPU engine without a model, or not built in at all.
    let ended = tune(
        &fixture,
        &["--engine tract --scenario Offline --limit 2s --scratch nowhere"],
    );
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stdout.contains("nothing ran"), "{}", ended.stdout);
    let (system, text) = found(&fixture);
    assert!(system.runs.is_empty() && system.partial.is_some());
    assert!(text.contains("failed: "), "{text}");

    let ended = tune(&fixture, &["--engine null --scenario Offline"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended
            .stderr
            .contains("the null engine has nothing to tune in Offline"),
        "{}",
        ended.stderr
    );
}

/// A benchmark with its model's file, and fakes of CUDA's driver and of TensorRT.
fn with_fakes() -> (Fixture, FakeTensorrt) {
    let (fixture, fakes) = (Fixture::new(), FakeTensorrt::new());
    if !fixture.path("model.onnx").exists() {
        fs::write(fixture.path("model.onnx"), "the fake reads no model").unwrap();
    }
    (fixture, fakes)
}

fn agent_over(fakes: &FakeTensorrt, fixture: &Fixture, parts: &[&str]) -> Ended {
    let program = env!("CARGO_BIN_EXE_regatta-agent");
    let output = fakes.agent(program, fixture.scratch(), &words(parts)).output();
    Ended::from(output.unwrap())
}

/// Checks that no trial lacked an engine. On a busy machine one may fail for another reason.
fn lacks_no_engine(text: &str) {
    for reason in ["finds no engine in", "is not built"] {
        assert!(!text.contains(reason), "{text}");
    }
}

const TENSORRT: &str = "--scratch . --engine tensorrt --scenario Offline --set warmup_duration=0.02";

/// The search finds a batch size for each of two engines, and `bench` uses them.
#[test]
fn tensorrt_is_tuned_with_the_engines_that_there_are() {
    let (fixture, fakes) = with_fakes();
    let agent = |parts: &[&str]| agent_over(&fakes, &fixture, parts);
    for batch in ["8", "64"] {
        let built = agent(&["engine build --onnx model.onnx --profiles 2 --batch", batch]);
        assert_eq!(built.code, 0, "{built:?}");
    }
    let before = engines(&agent);
    let ended = agent(&[TUNE, TENSORRT, "--limit 2s --no-build"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(engines(&agent), before, "none was built");
    let (system, text) = found(&fixture);
    lacks_no_engine(&text);
    assert_eq!(system.runs.len(), 1, "{text}");
    assert_eq!(system.runs[0].engine, EngineKind::Tensorrt);
    let batch = system.runs[0].settings.gpu_batch_size;
    assert!(batch.is_some_and(|batch| batch <= 64), "{text}");
    assert_eq!(system.board.sms, Some(16), "as the driver says");
    let ended = agent(
        &[
            &[BENCH, REPORT][..],
            &bench_words(&fixture, "tensorrt", "found.toml"),
        ]
        .concat(),
    );
    takes(&ended, "tensorrt 8.5.2");
}

/// Returns unit, batch and profiles of every engine in the cache.
fn engines(agent: &dyn Fn(&[&str]) -> Ended) -> Vec<(bool, u64, u64)> {
    let listed = agent(&["engine list --format json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let entries = listed.as_array().unwrap().iter();
    let mut engines: Vec<_> = entries
        .map(|entry| {
            let manifest = &entry["manifest"];
            let number = |name: &str| manifest[name].as_u64().unwrap();
            (manifest["dla"].is_object(), number("batch"), number("profiles"))
        })
        .collect();
    engines.sort_unstable();
    engines
}

/// Every tried batch gets an engine. The GPU's has a profile for each stream of any trial, and `bench` uses the found values with
/// the engine that was built for them.
#[test]
fn engines_that_a_choice_lacks_are_built_for_its_trial() {
    let (fixture, fakes) = with_fakes();
    let agent = |parts: &[&str]| agent_over(&fakes, &fixture, parts);
    // An engine of the right batch with too few profiles for its streams.
    let built = agent(&["engine build --onnx model.onnx --batch 8"]);
    assert_eq!(built.code, 0, "{built:?}");
    let ended = agent(&[
        TUNE,
        TENSORRT,
        "--limit 1s --set max_dlas=2 --build-flag ignore-memory",
    ]);
    let (system, text) = found(&fixture);
    assert_eq!(ended.code, 0, "{ended:?} {text}");
    lacks_no_engine(&text);
    let there = engines(&agent);
    // With any number of trials, the first choice is batch 8 on GPU and DLA.
    assert!(
        there.contains(&(false, 8, 4)) && there.contains(&(true, 8, 1)),
        "{there:?}"
    );
    let built_lines = text.lines().filter(|line| line.starts_with("# engine built: "));
    let built_lines: Vec<&str> = built_lines.collect();
    assert_eq!(built_lines.len(), there.len() - 1, "{text}");
    assert!(
        built_lines.iter().all(|line| line.ends_with(" --ignore-memory")),
        "{built_lines:?}"
    );
    let settings = &system.runs[0].settings;
    let chosen = (
        settings.gpu_batch_size.unwrap() as u64,
        settings.dla_batch_size.unwrap() as u64,
    );
    assert!(there.contains(&(false, chosen.0, 4)) && there.contains(&(true, chosen.1, 1)));
    let ended = agent(
        &[
            &[BENCH, REPORT, "--set max_dlas=2"][..],
            &bench_words(&fixture, "tensorrt", "found.toml"),
        ]
        .concat(),
    );
    takes(&ended, "tensorrt 8.5.2");
}

/// Networks whose dimensions are free: as exporters of detection networks leave them, and as that of BERT, for several lengths of sequences.
#[test]
fn engines_of_trials_get_the_shapes_that_the_run_needs() {
    let place = Place::new();
    let tune = |settings: &str, environment: &[(&str, &str)]| {
        let words = words(&[TUNE, TENSORRT, "--limit 1s --build-flag ignore-memory", settings]);
        let ended = place.agent(&words, environment);
        let (_, text) = found(&place.fixture);
        assert_eq!(ended.code, 0, "{ended:?} {text}");
        lacks_no_engine(&text);
        let built = text.lines().filter(|line| line.starts_with("# engine built: "));
        built.map(str::to_owned).collect::<Vec<_>>()
    };
    place.write_network(&[0, 1, 0, 0]);
    let built = tune("", &[("FAKE_TRT_FREE", "1")]);
    let has_shape = |line: &String| line.contains(" --input-shape 1,8,8 ");
    assert!(!built.is_empty() && built.iter().all(has_shape), "{built:?}");

    place.fixture.take_sequences();
    let environment = [
        ("FAKE_TRT_INPUTS", "3"),
        ("FAKE_TRT_INPUT", "int32"),
        ("FAKE_TRT_FREE", "1"),
    ];
    let built = tune("--set sequence_lengths=16,40,64", &environment);
    let of_three_lengths = |line: &String| line.matches(" --input-shape ").count() == 9;
    assert!(
        !built.is_empty() && built.iter().all(of_three_lengths),
        "{built:?}"
    );
}

/// A trial with DLA would measure the GPU alone.
#[test]
fn search_leaves_out_dla_cores_that_tensorrt_does_not_drive() {
    let (fixture, fakes) = with_fakes();
    fakes.become_version("libnvinfer.so.10", &["10.3.0"]);
    let program = env!("CARGO_BIN_EXE_regatta-agent");
    let tune = words(&[
        TUNE,
        TENSORRT,
        "--limit 1s --set max_dlas=2 --build-flag ignore-memory",
    ]);
    let mut command = fakes.agent(program, fixture.scratch(), &tune);
    let ended = Ended::from(command.env("FAKE_TRT_VERSION", "101602").output().unwrap());
    let (_, text) = found(&fixture);
    assert_eq!(ended.code, 0, "{ended:?} {text}");
    lacks_no_engine(&text);
    assert!(!text.contains("dla_batch_size"), "{text}");
}

/// An engine that cannot be built is a failed trial with its reason, once for each engine. The search continues.
#[test]
fn an_engine_that_cannot_be_built_is_a_failed_trial() {
    let (fixture, fakes) = with_fakes();
    let ended = agent_over(
        &fakes,
        &fixture,
        &[TUNE, TENSORRT, "--limit 2s --build-flag input-shape=3,5,7"],
    );
    assert_eq!(ended.code, 1, "{ended:?}");
    let (system, text) = found(&fixture);
    assert!(system.runs.is_empty(), "{text}");
    assert!(
        text.contains(
            "failed: its engine is not built: TensorRT rejects the model: the input does not accept that"
        ),
        "{text}"
    );
}

/// On the CPU engine over a real model, `bench` runs with what the search found.
#[cfg(feature = "tract")]
#[test]
fn the_cpu_engine_is_tuned_on_a_real_model() {
    let fixture = Fixture::new();
    let ended = tune(
        &fixture,
        &["--engine tract --scenario Offline --limit 2s --scratch ."],
    );
    assert_eq!(ended.code, 0, "{ended:?}");
    let (system, text) = found(&fixture);
    let [offline] = &system.runs[..] else {
        panic!("{text}");
    };
    let settings = &offline.settings;
    assert!(
        settings.batch_size.is_some() && settings.inference_streams.is_some(),
        "{text}"
    );
    assert_eq!(
        offline.expected.offline_expected_qps, offline.result,
        "LoadGen gets the measured rate"
    );
    assert!(text.contains("  coarse "), "{text}");
    let tract = bench_words(&fixture, "tract", "found.toml");
    let bench = words(&[&[BENCH, REPORT][..], &tract].concat());
    let ended = agent(fixture.scratch(), &bench);
    takes(&ended, "tract ");
}

/// The arguments of a short `bench`.
const BENCH: &str = "bench --benchmark pixels --benchmark-file benchmark.toml --scenario Offline --mode PerformanceOnly \
                     --mlperf-conf mlperf.conf --user-conf user.conf --log-dir logs --duration 100ms";
const REPORT: &str = "--scratch . --format json";

/// Returns its arguments with a system's values and the files that it reads.
fn bench_words<'a>(fixture: &Fixture, sut: &'a str, system: &'a str) -> [&'a str; 4] {
    for (name, conf) in [
        ("mlperf.conf", support::MLPERF_CONF),
        ("user.conf", "*.*.min_duration = 50\n"),
    ] {
        fs::write(fixture.path(name), conf).unwrap();
    }
    ["--engine", sut, "--system", system]
}

/// Checks that a run used this engine with all values of the file.
fn takes(ended: &Ended, engine: &str) {
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(
        report["engine"].as_str().unwrap().starts_with(engine),
        "{report:#}"
    );
    assert!(report["metric"]["value"].as_f64().unwrap() > 0.0, "{report:#}");
    let taken = report["system"]["settings"].as_array().unwrap();
    assert!(!taken.is_empty(), "{report:#}");
}
