//! Measures what `sequence_lengths` gains for BERT on tract: processor time of Offline with and without it, in turns. Loading is not counted.
//!
//! `cargo bench -p regatta-tests --bench sequence_lengths`. The network has one of BERT-large's 24 layers, with random weights. The samples have
//! 16, 32 ... 384 tokens; those of SQuAD have other lengths, and gain more or less. `REGATTA_BENCH_ROUNDS` (5) sets how often.

use std::{env, error::Error, fs, path::Path, process::Command};

use regatta_test_support::{fixture::npy, small_bert};
use regatta_tests::{
    agent, build_release_binaries,
    mlperf_benchmark::replaced,
    statistics::{median, ratio},
};

type AnyError = Box<dyn Error>;

const SAMPLES: usize = 24;
const FULL: usize = 384;
const VOCABULARY: usize = 1000;
const LENGTHS: &str = "sequence_lengths=128,192,256";

fn main() -> Result<(), AnyError> {
    // `cargo bench` says so; test runners that look into every target do not.
    if !env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let setting = env::var("REGATTA_BENCH_ROUNDS").ok();
    let rounds: usize = setting.and_then(|value| value.parse().ok()).unwrap_or(5);
    build_release_binaries();
    let scratch = tempfile::tempdir()?;
    write_benchmark(scratch.path())?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        without.push(seconds(scratch.path(), &[])?);
        with.push(seconds(scratch.path(), &["--set", LENGTHS])?);
        println!(
            "round {round}: {:.1} ms per sample without, {:.1} ms with {LENGTHS}",
            1e3 * without[round - 1],
            1e3 * with[round - 1]
        );
    }
    println!(
        "median of {rounds}: {:.1} ms per sample without, {:.1} ms with; ratio {}",
        1e3 * median(&without),
        1e3 * median(&with),
        ratio(&without, &with)
    );
    Ok(())
}

/// Writes benchmark file, network and samples.
fn write_benchmark(scratch: &Path) -> Result<(), AnyError> {
    let text = include_str!("../../../configs/benchmarks/bert-99.toml").to_owned();
    let changes = [
        ("_samples = 10833", format!("_samples = {SAMPLES}")),
        ("models/bert/model.onnx", "model.onnx".to_owned()),
        ("preprocessed_data/squad/int32", "samples".to_owned()),
    ];
    let changes = changes.each_ref().map(|(own, changed)| (*own, changed.as_str()));
    fs::write(scratch.join("benchmark.toml"), replaced(text, &changes))?;
    fs::write(
        scratch.join("model.onnx"),
        small_bert::with_large_layer(VOCABULARY),
    )?;
    fs::create_dir(scratch.join("samples"))?;
    let token = |sample: usize, place: usize| place < (sample + 1) * FULL / SAMPLES;
    for (input, value) in [("input_ids", 7), ("input_mask", 1), ("segment_ids", 0)] {
        let values = (0..SAMPLES * FULL).map(|at| {
            // Samples of all lengths are mixed: 7 and their number have no common factor.
            let sample = at / FULL * 7 % SAMPLES;
            value * i32::from(token(sample, at % FULL))
        });
        let data: Vec<u8> = values.flat_map(i32::to_le_bytes).collect();
        let file = scratch.join(format!("samples/{input}.npy"));
        fs::write(file, npy("<i4", &[SAMPLES, FULL], &data))?;
    }
    Ok(())
}

/// Returns the processor time per sample: that of a query with each sample twice, less that of one with each once.
fn seconds(scratch: &Path, settings: &[&str]) -> Result<f64, AnyError> {
    let [once, twice] = [SAMPLES, 2 * SAMPLES].map(|count| run(scratch, count, settings));
    Ok((twice? - once?) / SAMPLES as f64)
}

/// Returns the processor time of a run with one query of `count` samples.
fn run(scratch: &Path, count: usize, settings: &[&str]) -> Result<f64, AnyError> {
    let conf = format!(
        "*.Offline.min_query_count = {count}\n*.Offline.min_duration = 1\n*.Offline.target_qps = 1\n"
    );
    fs::write(scratch.join("mlperf.conf"), conf)?;
    let words = "bench --engine tract --benchmark bert-99 --scenario Offline --mode PerformanceOnly --benchmark-file benchmark.toml --scratch . \
                 --mlperf-conf mlperf.conf --log-dir logs --format json --set batch_size=4 --set warmup_duration=0";
    let before = children_seconds();
    let ended = Command::new(agent())
        .args(words.split_ascii_whitespace())
        .args(settings)
        .current_dir(scratch)
        .output()?;
    let taken = children_seconds() - before;
    let report: serde_json::Value = serde_json::from_slice(&ended.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&ended.stderr)))?;
    if report["performance"]["samples"] != count {
        return Err(format!("not a query of {count} samples: {report:#}").into());
    }
    Ok(taken)
}

/// Returns the processor time of all children that have ended.
fn children_seconds() -> f64 {
    // SAFETY: a rusage of zeros is one, and the call fills it.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
