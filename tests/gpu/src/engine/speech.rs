//! Checks small networks of RNN-T and Whisper, whose states stay on the GPU: the transcripts must equal those of the CPU engine.

use std::fs;

use anyhow::{Context as _, ensure};

use super::benchmark::Benchmark;
use crate::outcome::{Kit, Outcome};

pub(crate) fn rnnt(kit: &Kit) -> anyhow::Result<Outcome> {
    compare(kit, "rnnt")
}

pub(crate) fn whisper(kit: &Kit) -> anyhow::Result<Outcome> {
    compare(kit, "whisper")
}

fn compare(kit: &Kit, name: &'static str) -> anyhow::Result<Outcome> {
    let packed = kit.speech.join(name);
    if !packed.join("benchmark.toml").exists() {
        return Ok(Outcome::skipped("the archive was built with --without-speech"));
    }
    let benchmark = Benchmark::in_directory(packed, name, None)?;
    // Engines are not reused in other runs of the kit.
    let _ = fs::remove_dir_all(benchmark.path("engines"));
    let agent = benchmark.agent(kit).with_fake("FAKE_TRT_COMPUTES", "1");
    benchmark.run(&agent, "tract", "Offline", "AccuracyOnly", &["batch_size=3"])?;
    let expected = benchmark.answers()?;
    let longest = expected
        .iter()
        .map(String::len)
        .max()
        .context("no sample was answered")?
        / 2;
    ensure!(
        longest > 4,
        "the longest transcript has {longest} symbols: the comparison would show little"
    );
    let runs: [(&str, &[&str]); 4] = [
        ("Offline", &["batch_size=3", "gpu_copy_streams=2"]),
        ("SingleStream", &[]),
        ("Offline", &["batch_size=8"]),
        ("SingleStream", &["use_graphs=true"]),
    ];
    for (scenario, settings) in runs {
        benchmark.run(&agent, "tensorrt", scenario, "AccuracyOnly", settings)?;
        let answers = benchmark.answers()?;
        let differing = answers
            .iter()
            .zip(&expected)
            .filter(|(got, correct)| got != correct)
            .count();
        ensure!(
            differing == 0 && answers.len() == expected.len(),
            "{differing} of {} transcripts differ in {scenario} with {settings:?}",
            expected.len()
        );
    }
    Ok(
        Outcome::passed(format!("{} transcripts, {} runs", expected.len(), runs.len())).with(
            "longest transcript",
            longest as f64,
            "symbols",
        ),
    )
}
