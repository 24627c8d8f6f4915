//! Checks of latencies: ResNet50 compared with `trtexec`, the harness's overhead, and builds with a timing cache.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, ensure};
use regatta_test_support::fixture::npy;
use serde_json::Value;

use super::{
    agent::Agent,
    benchmark::Benchmark,
    resnet50_shaped::{Size, resnet50_shaped},
    trtexec,
};
use crate::{
    driver,
    outcome::{Kit, Outcome},
};

/// The number of samples for the ResNet50-shaped network.
const SAMPLES: usize = 16;

/// Returns the metric of a report: a latency in nanoseconds, or a rate in samples per second.
pub(crate) fn value(report: &Value) -> anyhow::Result<f64> {
    let value = report["metric"]["value"].as_f64();
    value
        .filter(|value| *value > 0.0)
        .context("the run has no metric")
}

/// Checks that a second build with another batch size is faster than the first, because it finds timings in the cache.
pub(crate) fn timing_cache(kit: &Kit) -> anyhow::Result<Outcome> {
    let directory = kit.work.join("timing-cache");
    fs::create_dir_all(&directory)?;
    fs::write(
        directory.join("network.onnx"),
        resnet50_shaped(Size::for_kit(kit)),
    )?;
    let agent = Agent::new(kit, &directory);
    let build = |batch: &str| {
        let built = agent.json(&["engine", "build", "--onnx", "network.onnx", "--batch", batch])?;
        built["build_seconds"]
            .as_f64()
            .context("the agent reports no time")
    };
    let first = build("4")?;
    let second = build("5")?;
    // The fake builds in no time.
    ensure!(
        kit.has_fakes || second < first,
        "the second build took {second:.1} s, the first {first:.1} s"
    );
    Ok(Outcome::passed("batches of 4, then of 5")
        .with("first build", first, "s")
        .with("second build", second, "s"))
}

/// Returns the benchmark whose latency is measured, and the name of its network.
fn resnet50_benchmark(kit: &Kit) -> anyhow::Result<(Benchmark, &'static str)> {
    if kit.has_fakes {
        // The fake can only compute the pixel benchmark.
        return Ok((Benchmark::pixels()?, "model.onnx"));
    }
    let directory = kit.work.join("resnet50");
    fs::create_dir_all(directory.join("samples"))?;
    let model = directory.join("model.onnx");
    let (input, offset) = match &kit.resnet50 {
        Some(published) => {
            fs::copy(published, &model)
                .with_context(|| format!("{} cannot be copied", published.display()))?;
            ("input_tensor:0", "class_offset = -1\n")
        }
        None => {
            fs::write(&model, resnet50_shaped(Size::for_kit(kit)))?;
            ("image", "")
        }
    };
    let mut map = String::new();
    for index in 0..SAMPLES {
        let mut data = vec![0; 3 * 224 * 224];
        driver::fill(&mut data, index as u64);
        // Pixels between -128 and 127, about the range after subtracting the reference's means.
        let data: Vec<u8> = data
            .iter()
            .flat_map(|&byte| (f32::from(byte) - 128.0).to_le_bytes())
            .collect();
        fs::write(
            directory.join(format!("samples/sample{index}.npy")),
            npy("<f4", &[3, 224, 224], &data),
        )?;
        map.push_str(&format!("sample{index} 0\n"));
    }
    fs::write(directory.join("map.txt"), map)?;
    let text = format!(
        "schema = 1\nname = \"shaped\"\nloadgen_model = \"shaped\"\ntitle = \"ResNet50's shape\"\n\
         not_submittable = \"the samples are random\"\n\n[model]\nfile = \"model.onnx\"\ninput_name = \"{input}\"\n\
         input_shape = [3, 224, 224]\ninput_dtype = \"float32\"\nresponse = \"argmax-int32\"\n{offset}\n\
         [dataset]\ndir = \"samples\"\nmap = \"map.txt\"\ntotal_samples = {SAMPLES}\nperformance_samples = {SAMPLES}\n\n\
         [accuracy]\nmetric = \"top1\"\nreference = 100.0\nfactor = 0.99\n"
    );
    fs::write(directory.join("benchmark.toml"), text)?;
    Ok((Benchmark::in_directory(directory, "shaped", None)?, input))
}

/// Measures ResNet50's latency in SingleStream.
pub(crate) fn resnet50(kit: &Kit) -> anyhow::Result<Outcome> {
    let (benchmark, _) = resnet50_benchmark(kit)?;
    let measured = measure(&benchmark.agent(kit), &benchmark)?;
    let network = kit.resnet50.as_ref().map_or_else(
        || "random weights".to_owned(),
        |published| published.display().to_string(),
    );
    let detail = format!("{network}, {}, 90th percentile", measured.precision);
    Ok(Outcome::passed(detail).with("SingleStream", measured.milliseconds, "ms"))
}

/// Compares the latency with that of `trtexec` for the same engine.
pub(crate) fn beside_trtexec(kit: &Kit) -> anyhow::Result<Outcome> {
    let Some(program) = trtexec::find(kit) else {
        return Ok(Outcome::skipped("trtexec is neither beside TensorRT nor in PATH"));
    };
    let (benchmark, input) = resnet50_benchmark(kit)?;
    let agent = benchmark.agent(kit);
    let measured = measure(&agent, &benchmark)?;
    let shape = format!("{input}:1x3x224x224");
    let ours = measured.milliseconds;
    let theirs = trtexec::latency(kit, &program, &plan(&agent)?, &shape)?;
    let allowed = theirs * MAX_RATIO + MAX_ADDITION_MS;
    ensure!(
        ours <= allowed,
        "SingleStream takes {ours:.3} ms, trtexec {theirs:.3} ms: more than {allowed:.3} ms"
    );
    let detail = format!("{}, 90th percentiles", measured.precision);
    Ok(Outcome::passed(detail)
        .with("SingleStream", ours, "ms")
        .with("trtexec", theirs, "ms")
        .with("ours / trtexec", ours / theirs, "ratio"))
}

/// The largest accepted ratio to the latency of `trtexec`, and a constant allowance: clocks differ between two runs, and LoadGen's latency includes
/// its own call.
const MAX_RATIO: f64 = 1.1;
const MAX_ADDITION_MS: f64 = 0.05;

struct Measured {
    milliseconds: f64,
    precision: &'static str,
}

fn measure(agent: &Agent<'_>, benchmark: &Benchmark) -> anyhow::Result<Measured> {
    let run = |precision: &str| {
        let settings = ["use_spin_wait=true", "use_graphs=true", precision];
        let report = benchmark.run(agent, "tensorrt", "SingleStream", "PerformanceOnly", &settings)?;
        Ok::<_, anyhow::Error>(value(&report)? / 1e6)
    };
    match run("precision=fp16") {
        // TensorRT 11 and TensorRT-RTX only use the types in the network.
        Err(error) if is_not_offered(&error) => Ok(Measured {
            milliseconds: run("precision=as-in-network")?,
            precision: "fp32",
        }),
        measured => Ok(Measured {
            milliseconds: measured?,
            precision: "fp16",
        }),
    }
}

/// Returns whether TensorRT rejected a precision because it only uses the types in the network.
pub(crate) fn is_not_offered(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("Q/DQ")
}

/// Returns the only engine in the cache.
fn plan(agent: &Agent<'_>) -> anyhow::Result<PathBuf> {
    let engines = fs::read_dir(agent.engines())?.filter_map(Result::ok);
    let plans: Vec<_> = engines
        .map(|entry| entry.path().join("engine.plan"))
        .filter(|path| path.exists())
        .collect();
    let [plan] = &plans[..] else {
        anyhow::bail!("{} engines were built, expected 1", plans.len())
    };
    Ok(plan.clone())
}

/// Measures the time per query of LoadGen with an engine that does nothing, and with a very small network.
pub(crate) fn overhead(kit: &Kit) -> anyhow::Result<Outcome> {
    let benchmark = Benchmark::pixels()?;
    let agent = benchmark.agent(kit);
    let run = |engine: &str, settings: &[&str]| -> anyhow::Result<f64> {
        let report = benchmark.run(&agent, engine, "SingleStream", "PerformanceOnly", settings)?;
        Ok(value(&report)? / 1e3)
    };
    let nothing = run("null", &[])?;
    let polls = run("tensorrt", &["use_spin_wait=true", "use_graphs=true"])?;
    let sleeps = run("tensorrt", &["use_spin_wait=false", "use_graphs=false"])?;
    Ok(Outcome::passed("SingleStream, 90th percentile per query")
        .with("null", nothing, "us")
        .with("small network, graph, polls", polls, "us")
        .with("small network, sleeps", sleeps, "us"))
}
