//! Compares the answers of TensorRT's engines with the right ones.

use anyhow::ensure;

use super::benchmark::{Benchmark, digits_accuracy, pixel_answers};
use crate::outcome::{Kit, Outcome};

/// Settings for copies to and from the device.
const COPIES: &[&str] = &[
    "use_direct_host_access=false",
    "use_graphs=false",
    "use_spin_wait=true",
];
/// Settings for graphs that access the host's memory.
const GRAPHS: &[&str] = &["use_graphs=true", "use_direct_host_access=true"];

/// The accuracy runs of the pixel benchmark: scenario and settings.
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

/// Checks the answers in each scenario, with each kind of device use, and with several batch sizes and lanes.
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
    // The fake cannot compute the network of digits.
    if kit.has_fakes {
        return Ok(Outcome::passed(format!(
            "{} runs, digits without their network",
            RUNS.len()
        )));
    }
    let accuracy = digits_accuracy(&answers)?;
    ensure!(
        accuracy > 98.0,
        "only {accuracy:.2} % of the digits are recognised"
    );
    Ok(Outcome::passed(format!("{} runs", RUNS.len() + 1)).with("digits", accuracy, "%"))
}

/// Compares MultiStream with graphs and direct host access to MultiStream with copies.
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

/// Checks that all GPUs share a run, and that the answers equal those of one GPU.
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
