//! Writes benchmarks: samples, networks and the right answers.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;
use regatta_test_support::fixture::{self, Fixture};
use serde_json::Value;

use super::agent::Agent;
use crate::outcome::Kit;

/// LoadGen's settings: the seeds of a round, and a few seconds of run time at most.
const MLPERF_CONF: &str = "\
*.*.qsl_rng_seed = 2085463073848966840
*.*.sample_index_rng_seed = 2747215439041700203
*.*.schedule_rng_seed = 16159082839903944936
*.SingleStream.target_latency_percentile = 90
*.MultiStream.target_latency_percentile = 99
*.MultiStream.samples_per_query = 8
*.Server.target_latency = 100
*.Server.target_latency_percentile = 99
*.Offline.min_query_count = 1
";
/// Latencies and rates that keep LoadGen from generating more queries than needed.
const USER_CONF: &str = "\
*.SingleStream.target_latency = 0.01
*.MultiStream.target_latency = 0.1
*.Server.target_qps = 200
*.Offline.target_qps = 2000
";

/// A benchmark in a directory.
pub(crate) struct Benchmark {
    /// Keeps the directory of the pixel benchmark.
    _fixture: Option<Fixture>,
    directory: PathBuf,
    name: &'static str,
}

impl Benchmark {
    /// The pixel benchmark of the tests: each sample has one bright pixel, and the answer is its position.
    pub(crate) fn pixels() -> anyhow::Result<Self> {
        let fixture = Fixture::new();
        Self::in_directory(fixture.scratch().to_owned(), "pixels", Some(fixture))
    }

    /// Handwritten digits with a trained network.
    pub(crate) fn digits(directory: &Path) -> anyhow::Result<Self> {
        let samples = directory.join("preprocessed_data/digits/float32");
        fs::create_dir_all(&samples)?;
        fs::create_dir_all(directory.join("models/digits"))?;
        let network = include_bytes!("../../../../datasets/digits/digits.onnx");
        fs::write(directory.join("models/digits/digits.onnx"), network)?;
        let mut map = String::new();
        for (index, (pixels, label)) in digits()?.iter().enumerate() {
            let data: Vec<u8> = pixels.iter().flat_map(|pixel| pixel.to_le_bytes()).collect();
            fs::write(
                samples.join(format!("digit{index}.npy")),
                fixture::npy("<f4", &[1, 8, 8], &data),
            )?;
            map.push_str(&format!("digit{index} {label}\n"));
        }
        fs::write(directory.join("preprocessed_data/digits/val_map.txt"), map)?;
        let text = include_str!("../../../../configs/benchmarks/digits.toml");
        fs::write(directory.join("benchmark.toml"), text)?;
        Self::in_directory(directory.to_owned(), "digits", None)
    }

    /// Completes a benchmark in a directory that contains its files, including `benchmark.toml`.
    pub(crate) fn in_directory(
        directory: PathBuf,
        name: &'static str,
        fixture: Option<Fixture>,
    ) -> anyhow::Result<Self> {
        fs::write(directory.join("mlperf.conf"), MLPERF_CONF)?;
        fs::write(directory.join("user.conf"), USER_CONF)?;
        Ok(Self {
            _fixture: fixture,
            directory,
            name,
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn agent<'a>(&self, kit: &'a Kit) -> Agent<'a> {
        Agent::new(kit, &self.directory)
    }

    /// Runs the benchmark, and builds the missing engines. Returns the agent's report.
    pub(crate) fn run(
        &self,
        agent: &Agent<'_>,
        engine: &str,
        scenario: &str,
        mode: &str,
        settings: &[&str],
    ) -> anyhow::Result<Value> {
        let fixed = "--benchmark-file benchmark.toml --scratch . --mlperf-conf mlperf.conf --user-conf user.conf \
                     --log-dir logs --duration 1s";
        let mut arguments: Vec<&str> = fixed.split_ascii_whitespace().collect();
        arguments.extend(["--benchmark", self.name, "--engine", engine]);
        arguments.extend(["--scenario", scenario, "--mode", mode]);
        for setting in settings {
            arguments.extend(["--set", setting]);
        }
        agent.bench(&arguments)
    }

    /// Returns the answers of the last accuracy run, ordered by sample, in the log's hexadecimal form.
    pub(crate) fn answers(&self) -> anyhow::Result<Vec<String>> {
        let log = fs::read(self.path("logs/mlperf_log_accuracy.json"))?;
        let log: Vec<Value> = serde_json::from_slice(&log).context("the accuracy log is not valid JSON")?;
        let mut answers = vec![None; log.len()];
        for entry in &log {
            let index = entry["qsl_idx"]
                .as_u64()
                .and_then(|index| usize::try_from(index).ok());
            let answer = index.and_then(|index| answers.get_mut(index));
            *answer.context("the accuracy log has a sample twice")? =
                entry["data"].as_str().map(str::to_owned);
        }
        answers
            .into_iter()
            .collect::<Option<_>>()
            .context("the accuracy log has a sample twice")
    }
}

/// Formats a class as the log does.
pub(crate) fn class(class: i32) -> String {
    class
        .to_le_bytes()
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect()
}

/// Returns the right answers of [`Benchmark::pixels`].
pub(crate) fn pixel_answers() -> Vec<String> {
    (0..fixture::TOTAL)
        .map(|index| class(fixture::class(index)))
        .collect()
}

/// Returns the percentage of correctly recognised digits.
pub(crate) fn digits_accuracy(answers: &[String]) -> anyhow::Result<f64> {
    let digits = digits()?;
    ensure!(
        answers.len() == digits.len(),
        "{} of {} digits were answered",
        answers.len(),
        digits.len()
    );
    let right = digits
        .iter()
        .zip(answers)
        .filter(|((_, label), answer)| class(*label) == **answer);
    Ok(100.0 * right.count() as f64 / digits.len() as f64)
}

/// Returns the pixels and labels of the scans that were not used for training.
fn digits() -> anyhow::Result<Vec<(Vec<f32>, i32)>> {
    const SEEN: usize = 1200;
    let mut table = String::new();
    GzDecoder::new(&include_bytes!("../../../../datasets/digits/digits.csv.gz")[..])
        .read_to_string(&mut table)?;
    let scan = |line: &str| {
        let (pixels, label) = line.rsplit_once(',').context("a scan has a label")?;
        let pixels: Result<Vec<f32>, _> = pixels
            .split(',')
            .map(|pixel| pixel.parse::<f32>().map(|pixel| pixel / 16.0))
            .collect();
        Ok((pixels?, label.trim().parse()?))
    };
    table.lines().skip(SEEN).map(scan).collect()
}
