//! Measures what Triton adds to a batch: the same network in this process by tract, and on Triton by ONNX Runtime in its python backend, with tensors in
//! the body of HTTP requests and in shared memory, in turns. A null network in the python backend shows what is not the network's time.
//!
//! `cargo bench -p regatta-engines --bench triton`. Triton comes from `tests/oracles/triton`, which installs it; `REGATTA_ORACLES` names the
//! directory. `REGATTA_BENCH_ROUNDS` (5) and `REGATTA_BENCH_REQUESTS` (200) set how often.

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use regatta_catalogue::{known, servers};
use regatta_engines::{Answers, Batch, EngineRequest, Input, LoadRequest, Loaded, SequenceBuckets};
use regatta_test_support::{oracle, small_resnet50};
use regatta_types::{Scenario, benchmark::Benchmark, documents::EngineKind, engine_settings::EngineSettings};

type AnyError = Box<dyn Error>;

/// The batches that are measured.
const BATCHES: [usize; 2] = [1, 8];

fn main() -> Result<(), AnyError> {
    // `cargo bench` says so; test runners that look into every target do not.
    if !env::args().any(|word| word == "--bench") {
        return Ok(());
    }
    let number = |name: &str, usual: usize| {
        let set = env::var(name).ok().and_then(|value| value.parse().ok());
        set.unwrap_or(usual)
    };
    let (rounds, requests) = (
        number("REGATTA_BENCH_ROUNDS", 5),
        number("REGATTA_BENCH_REQUESTS", 200),
    );
    let python = oracle::triton().ok_or("Triton is not installed")?;
    let benchmark = known::benchmarks()?
        .into_iter()
        .find(|benchmark| benchmark.name == "resnet50")
        .ok_or("no resnet50")?;
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("model.onnx"), small_resnet50::model())?;
    let mut engines = [
        load(dir.path(), &benchmark, None)?,
        load(dir.path(), &benchmark, Some(driver(&python, "model.py", false)?))?,
        load(dir.path(), &benchmark, Some(driver(&python, "model.py", true)?))?,
        load(dir.path(), &benchmark, Some(driver(&python, "null.py", false)?))?,
        load(dir.path(), &benchmark, Some(driver(&python, "null.py", true)?))?,
    ];
    println!("time of a batch in microseconds, median of {rounds} rounds of {requests} batches");
    for size in BATCHES {
        let mut times = [const { Vec::new() }; 5];
        for _ in 0..rounds {
            for (engine, times) in engines.iter_mut().zip(&mut times) {
                times.push(infer(engine, size, requests)?);
            }
        }
        let medians = times.map(|mut times| median(&mut times));
        let names = [
            "in process (tract)",
            "Triton over HTTP",
            "Triton with shared memory",
            "null network over HTTP",
            "null network with shared memory",
        ];
        for (name, time) in names.iter().zip(medians) {
            println!(
                "batch {size}: {name:<34} {time:>9.1} {:>7.2} of in process",
                time / medians[0]
            );
        }
    }
    Ok(())
}

/// Returns the shipped driver with the oracle's server and a model of its python backend.
fn driver(python: &Path, model: &str, shares_memory: bool) -> Result<String, AnyError> {
    let named = servers::texts().find(|(name, _)| *name == "triton");
    let (_, text) = named.ok_or("no driver triton")?;
    let [serve, model] = ["serve.py", model].map(|name| oracle::directory("triton").join(name));
    let [python, serve, model] = [python, &serve, &model].map(|path| path.display().to_string());
    Ok(text
        .replace("\"tritonserver\"", &format!("{python:?}, {serve:?}"))
        .replace("\"onnxruntime\"", "\"python\"")
        .replace(
            "= \"{model}\"",
            &format!("= \"{{model}}\", \"model.py\" = {model:?}"),
        )
        .replace(
            "shared_memory = true",
            &format!("shared_memory = {shares_memory}"),
        ))
}

/// Loads the network in this process, or on a server.
fn load(dir: &Path, benchmark: &Benchmark, driver: Option<String>) -> Result<Loaded, AnyError> {
    // Each server has its own files.
    let files: PathBuf = tempfile::tempdir_in(dir)?.keep();
    let path = files.join("driver.toml").display().to_string();
    let kind = driver.as_ref().map_or(EngineKind::Tract, |_| EngineKind::Server);
    let named = driver.as_ref().map(|_| ("server", path.as_str()));
    if let Some(text) = &driver {
        fs::write(&path, text)?;
    }
    let settings = EngineSettings::parse(kind, named)?;
    let backend = regatta_engines::configure(
        kind,
        &EngineRequest {
            settings: &settings,
            scenario: Scenario::Offline,
            model: &benchmark.model,
            scratch: Some(dir),
            sends_first_tokens: false,
            files: &files,
        },
    )?;
    let request = LoadRequest {
        benchmark,
        model_file: dir.join("model.onnx"),
        image_sizes: Arc::default(),
        volumes: Arc::default(),
        sequences: Arc::new(SequenceBuckets::default()),
        batch_sizes: &BATCHES,
        takes_any_batch: true,
        streams: 1,
    };
    Ok(regatta_engines::load(&*backend, &request, None)?)
}

/// Returns the mean time of a batch, in microseconds.
fn infer(loaded: &mut Loaded, size: usize, requests: usize) -> Result<f64, AnyError> {
    let samples: Vec<usize> = (0..size).collect();
    let arena = vec![0; size * 3 * 224 * 224 * 4];
    let batch = Batch {
        samples: &samples,
        input: Input::Contiguous(&arena),
    };
    let mut answers = Answers::default();
    let begun = Instant::now();
    for _ in 0..requests {
        answers.clear();
        loaded.engines[0].infer(&batch, &mut answers)?;
        if answers.len() != size {
            return Err("an answer is missing".into());
        }
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / requests as f64)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
