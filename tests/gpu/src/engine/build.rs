//! Checks of engine builds: finding an engine again, every precision, plug-ins, and cancelling.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use regatta_test_support::fixture::CLASSES;
use rustix::process::{Pid, Signal, kill_process};

use super::{
    benchmark::{Benchmark, digits_accuracy, pixel_answers},
    latency::is_not_offered,
    resnet50_shaped::{Size, resnet50_shaped},
};
use crate::outcome::{Kit, Outcome, Verdict};

/// Checks that an engine is built, and that a second request finds it.
pub(crate) fn build_and_find(kit: &Kit) -> anyhow::Result<Outcome> {
    let benchmark = Benchmark::digits(&kit.work)?;
    let agent = benchmark.agent(kit);
    let build = [
        "engine",
        "build",
        "--onnx",
        "models/digits/digits.onnx",
        "--batch",
        "8",
        "--profiles",
        "2",
    ];
    let built = agent.json(&build)?;
    let tensors = built["tensors"].as_array().map_or(0, Vec::len);
    ensure!(tensors == 2, "the engine has {tensors} inputs and outputs");
    let again = agent.output(&build)?;
    let output = String::from_utf8_lossy(&again.stderr).into_owned();
    ensure!(
        again.status.success() && output.contains("found in"),
        "the engine was not found again: {output}"
    );
    let number = |key: &str| {
        built[key]
            .as_f64()
            .with_context(|| format!("the agent reports no {key}"))
    };
    let of = |key: &str| built["manifest"][key].as_str().unwrap_or("unknown").to_owned();
    Ok(
        Outcome::passed(format!("TensorRT {} for {}", of("tensorrt"), of("chip")))
            .with("build", number("build_seconds")?, "s")
            .with("engine", number("plan_bytes")? / 1024.0, "KiB"),
    )
}

/// Checks that digits are recognised in every precision. INT8 is calibrated with the samples.
pub(crate) fn precisions(kit: &Kit) -> anyhow::Result<Outcome> {
    // The fake can only compute the pixel benchmark.
    let benchmark = if kit.has_fakes {
        Benchmark::pixels()?
    } else {
        let directory = kit.work.join("precisions");
        fs::create_dir_all(&directory)?;
        Benchmark::digits(&directory)?
    };
    let samples = if kit.has_fakes {
        "samples"
    } else {
        "preprocessed_data/digits/float32"
    };
    let calibration = format!("calibration={samples}");
    let agent = benchmark.agent(kit);
    let mut outcome = Outcome::passed("Offline, batches of 8");
    for (precision, settings) in [
        ("fp32", &["precision=as-in-network"][..]),
        ("fp16", &["precision=fp16"]),
        ("int8", &["precision=int8", &calibration]),
    ] {
        let settings = [&["batch_size=8"], settings].concat();
        if let Err(error) = benchmark.run(&agent, "tensorrt", "Offline", "AccuracyOnly", &settings) {
            // TensorRT 11 and TensorRT-RTX only use the types in the network.
            if precision != "fp32" && is_not_offered(&error) {
                outcome.verdict = Verdict::Skip;
                outcome
                    .detail
                    .push_str(&format!("; {precision} is not offered: {error:#}"));
                continue;
            }
            return Err(error.context(precision));
        }
        let answers = benchmark.answers()?;
        let accuracy = if kit.has_fakes {
            let right = answers
                .iter()
                .zip(pixel_answers())
                .filter(|(got, correct)| *got == correct);
            100.0 * right.count() as f64 / answers.len() as f64
        } else {
            digits_accuracy(&answers)?
        };
        // The benchmark's target: 99 % of the reference.
        ensure!(
            accuracy >= 98.995 * 0.99,
            "{precision} recognises {accuracy:.2} % of {CLASSES} classes"
        );
        outcome = outcome.with(precision, accuracy, "%");
    }
    Ok(outcome)
}

/// Checks that a library with plug-ins is loaded for a build and for a run.
pub(crate) fn plugins(kit: &Kit) -> anyhow::Result<Outcome> {
    let Some(library) = &kit.plugins else {
        return Ok(Outcome::skipped("needs --plugins FILE"));
    };
    let benchmark = Benchmark::pixels()?;
    let agent = benchmark.agent(kit).with_fake("FAKE_TRT_PLUGIN", "1");
    let name = library
        .file_name()
        .and_then(|name| name.to_str())
        .context("the library has a name")?;
    fs::copy(library, benchmark.path(name))
        .with_context(|| format!("{} cannot be copied", library.display()))?;
    let setting = format!("tensorrt_plugins={name}");
    benchmark.run(
        &agent,
        "tensorrt",
        "Offline",
        "AccuracyOnly",
        &["batch_size=4", &setting],
    )?;
    ensure!(
        benchmark.answers()? == pixel_answers(),
        "wrong answers with plug-ins"
    );
    Ok(Outcome::passed(format!(
        "{} in a build and in a run",
        library.display()
    )))
}

/// A step of the builder may take a few seconds.
const MAX_CANCELLATION: Duration = Duration::from_secs(15);

/// Checks that an interrupted build ends soon and leaves no engine.
pub(crate) fn cancelled(kit: &Kit) -> anyhow::Result<Outcome> {
    let directory = kit.work.join("cancelled");
    fs::create_dir_all(&directory)?;
    fs::write(
        directory.join("network.onnx"),
        resnet50_shaped(Size::for_kit(kit)),
    )?;
    let agent = super::agent::Agent::new(kit, &directory).with_fake("FAKE_TRT_SLOW", "20000");
    let mut child = agent
        .command(&["engine", "build", "--onnx", "network.onnx", "--batch", "8"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child.stderr.take().context("the build has a standard error")?;
    // Reads to the end, so that the build never blocks on its output.
    let (mut last, mut interrupted) = (String::new(), None);
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if interrupted.is_none() && line.contains("building with TensorRT") {
            std::thread::sleep(Duration::from_millis(200));
            let id = Pid::from_raw(i32::try_from(child.id())?).context("a process has an id")?;
            kill_process(id, Signal::INT)?;
            interrupted = Some(Instant::now());
        }
        if !line.trim().is_empty() {
            last = line;
        }
    }
    let status = child.wait()?;
    let interrupted = interrupted.with_context(|| format!("no build began: {last}"))?;
    let ended = interrupted.elapsed();
    ensure!(
        status.code() == Some(3) && last.ends_with("the build was cancelled"),
        "{status}: {last}"
    );
    ensure!(ended < MAX_CANCELLATION, "the build ended {ended:?} after SIGINT");
    let left: Vec<_> = fs::read_dir(agent.engines())
        .map(|entries| {
            entries
                .filter_map(Result::ok)
                .map(|entry| entry.path())
                .filter(|path| path.is_dir())
                .collect()
        })
        .unwrap_or_default();
    ensure!(left.is_empty(), "a cancelled build left {left:?}");
    Ok(Outcome::passed("SIGINT in a build").with("until the end", ended.as_secs_f64(), "s"))
}
