//! Answers of TensorRT's engines, beside the right ones.

use anyhow::ensure;

use super::benchmark::{Benchmark, digits_accuracy, pixel_answers};
use crate::outcome::{Kit, Outcome};

/// Settings of copies to and from the device.
const COPIES: &[&str] = &[
    "use_direct_host_access=false",
    "use_graphs=false",
    "use_spin_wait=true",
];
/// Settings of graphs over the host's memory.
const GRAPHS: &[&str] = &["use_graphs=true", "use_direct_host_access=true"];

/// Runs of the pixels give the right answers: scenario and settings.
const RUNS: &[(&str, &[&str])] = &[
    ("SingleStream", &[]),
    ("SingleStream", COPIES),
    ("SingleStream", GRAPHS),
    ("MultiStream", &[]),
    ("Offline", &["batch_size=1"]),
    ("Offline", &["batch_size=3"]),
    ("Offline", &["batch_size=8"]),
    (
        "Offline",
        &["batch_size=8", "gpu_copy_streams=2", "gpu_inference_streams=1"],
    ),
    (
        "Offline",
        &["batch_size=8", "gpu_copy_streams=3", "use_graphs=true"],
    ),
    ("Server", &["batch_size=4"]),
];

/// Right answers in each scenario, with each way of device use and several batches and lanes.
pub(crate) fn scenarios(kit: &Kit) -> anyhow::Result<Outcome> {
    let benchmark = Benchmark::pixels()?;
    let agent = benchmark.agent(kit);
    for (scenario, settings) in RUNS {
        benchmark.run(&agent, "tensorrt", scenario, "AccuracyOnly", settings)?;
        ensure!(
            benchmark.answers()? == pixel_answers(),
            "wrong answers in {scenario} with {settings:?}"
        );
    }
    let of_digits = Benchmark::digits(&kit.work)?;
    let agent = of_digits.agent(kit);
    of_digits.run(&agent, "tensorrt", "Offline", "AccuracyOnly", &["batch_size=8"])?;
    let answers = of_digits.answers()?;
    // The fake computes no network of digits.
    if kit.has_fakes {
        return Ok(Outcome::passed(format!(
            "{} runs, digits without their network",
            RUNS.len()
        )));
    }
    let accuracy = digits_accuracy(&answers)?;
    ensure!(accuracy > 98.0, "digits are recognised to {accuracy:.2} % only");
    Ok(Outcome::passed(format!("{} runs", RUNS.len() + 1)).with("digits", accuracy, "%"))
}

/// MultiStream with graphs and direct host access, beside copies.
pub(crate) fn graphs_and_direct(kit: &Kit) -> anyhow::Result<Outcome> {
    let benchmark = Benchmark::pixels()?;
    let agent = benchmark.agent(kit);
    let mut latencies = Vec::new();
    for (name, settings) in [("copies", COPIES), ("graphs, direct", GRAPHS)] {
        benchmark.run(&agent, "tensorrt", "MultiStream", "AccuracyOnly", settings)?;
        ensure!(
            benchmark.answers()? == pixel_answers(),
            "wrong answers with {settings:?}"
        );
        let report = benchmark.run(&agent, "tensorrt", "MultiStream", "PerformanceOnly", settings)?;
        let engine = report["engine"].as_str().unwrap_or_default();
        let is_direct = engine.contains("in host memory");
        ensure!(
            is_direct == (name != "copies"),
            "{name}: the engine says `{engine}`"
        );
        latencies.push((name, super::latency::value(&report)? / 1e3));
    }
    let outcome = Outcome::passed("MultiStream, 8 samples per query");
    Ok(latencies.into_iter().fold(outcome, |outcome, (name, latency)| {
        outcome.with(name, latency, "us")
    }))
}

/// All GPUs share a run, and the answers are those of one.
pub(crate) fn gpus(kit: &Kit) -> anyhow::Result<Outcome> {
    let count = regatta_cuda::Driver::open()?.devices()?.len();
    if count < 2 {
        return Ok(Outcome::skipped("this machine has one GPU"));
    }
    let benchmark = Benchmark::pixels()?;
    let agent = benchmark.agent(kit);
    let mut outcome = Outcome::passed(format!("{count} GPUs"));
    for (name, settings) in [
        ("one GPU", &["batch_size=4", "gpus=0"][..]),
        ("all GPUs", &["batch_size=4"]),
    ] {
        benchmark.run(&agent, "tensorrt", "Server", "AccuracyOnly", settings)?;
        ensure!(benchmark.answers()? == pixel_answers(), "wrong answers on {name}");
        let report = benchmark.run(&agent, "tensorrt", "Offline", "PerformanceOnly", settings)?;
        outcome = outcome.with(name, super::latency::value(&report)?, "samples/s");
    }
    Ok(outcome)
}
