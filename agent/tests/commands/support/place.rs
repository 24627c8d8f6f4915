//! A benchmark with the fakes of CUDA's driver and of TensorRT, engines for it, and runs of `bench` over them.

use std::{fs, path::PathBuf};

use regatta_test_support::{
    fake_tensorrt::FakeTensorrt,
    fixture::{self, Fixture},
};

use super::{Ended, MLPERF_CONF, USER_CONF};

/// A benchmark, the fakes, and engines for it.
pub(crate) struct Place {
    pub(crate) fixture: Fixture,
    pub(crate) fakes: FakeTensorrt,
    /// The engine that `bench` runs.
    pub(crate) sut: &'static str,
    pub(crate) loadgen: &'static str,
}

impl Place {
    pub(crate) fn new() -> Self {
        let fixture = Fixture::new();
        fs::write(fixture.path("mlperf.conf"), MLPERF_CONF).unwrap();
        fs::write(fixture.path("user.conf"), USER_CONF).unwrap();
        if !fixture.path("model.onnx").exists() {
            fs::write(fixture.path("model.onnx"), "the fake reads no model").unwrap();
        }
        Self {
            fixture,
            fakes: FakeTensorrt::new(),
            sut: "tensorrt",
            loadgen: "native",
        }
    }

    /// Writes a network that has only an input, which is all that the agent reads of it. A dimension of 0 is free.
    pub(crate) fn write_network(&self, dims: &[u8]) {
        let field = |number: u8, bytes: &[u8]| {
            let length = u8::try_from(bytes.len()).unwrap();
            [&[number << 3 | 2, length], bytes].concat()
        };
        let dim = |&dim: &u8| field(1, &if dim == 0 { field(2, b"any") } else { vec![8, dim] });
        let shape: Vec<u8> = dims.iter().flat_map(dim).collect();
        let kind = field(1, &[&[8, 1][..], &field(2, &shape)].concat());
        let input = [field(1, b"image"), field(2, &kind)].concat();
        fs::write(self.fixture.path("model.onnx"), field(7, &field(11, &input))).unwrap();
    }

    pub(crate) fn agent(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Ended {
        let program = env!("CARGO_BIN_EXE_regatta-agent");
        let mut command = self.fakes.agent(program, self.fixture.scratch(), arguments);
        Ended::from(command.envs(environment.iter().copied()).output().unwrap())
    }

    /// Builds an engine and returns its directory.
    pub(crate) fn build(&self, flags: &[&str], environment: &[(&str, &str)]) -> PathBuf {
        let build = [
            &["engine", "build", "--onnx", "model.onnx", "--format", "json"],
            flags,
        ]
        .concat();
        let built = self.agent(&build, environment);
        assert_eq!(built.code, 0, "{built:?}");
        let entries = fs::read_dir(self.fakes.engines()).unwrap();
        let engines = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir());
        engines
            .max_by_key(|path| {
                fs::metadata(path.join("engine.plan"))
                    .unwrap()
                    .modified()
                    .unwrap()
            })
            .unwrap()
    }

    pub(crate) fn bench(
        &self,
        scenario: &str,
        mode: &str,
        settings: &[&str],
        environment: &[(&str, &str)],
    ) -> Ended {
        self.bench_with(scenario, mode, settings, &[], environment)
    }

    /// As [`Self::bench`], with further flags.
    pub(crate) fn bench_with(
        &self,
        scenario: &str,
        mode: &str,
        settings: &[&str],
        flags: &[&str],
        environment: &[(&str, &str)],
    ) -> Ended {
        let usual = "bench --benchmark pixels --benchmark-file benchmark.toml --scratch . --mlperf-conf mlperf.conf \
                     --user-conf user.conf --log-dir logs --format json --set warmup_duration=0.05";
        let mut arguments: Vec<&str> = usual.split_ascii_whitespace().collect();
        arguments.extend(["--engine", self.sut, "--loadgen", self.loadgen]);
        arguments.extend(["--scenario", scenario, "--mode", mode]);
        if mode == "PerformanceOnly" {
            arguments.extend(["--duration", "100ms"]);
        }
        for setting in settings {
            arguments.extend(["--set", setting]);
        }
        arguments.extend(flags);
        self.agent(&arguments, environment)
    }

    /// The answers in the accuracy log, by sample.
    pub(crate) fn answers(&self) -> Vec<i32> {
        let class = |data: &String| u32::from_str_radix(data, 16).unwrap();
        self.raw_answers()
            .iter()
            .map(|data| i32::from_le_bytes(class(data).to_be_bytes()))
            .collect()
    }

    /// As [`Self::answers`], in the hexadecimal form of the log.
    pub(crate) fn raw_answers(&self) -> Vec<String> {
        let log = fs::read(self.fixture.path("logs/mlperf_log_accuracy.json")).unwrap();
        let log: Vec<serde_json::Value> = serde_json::from_slice(&log).unwrap();
        let mut answers = vec![String::new(); log.len()];
        for entry in log {
            let index = usize::try_from(entry["qsl_idx"].as_u64().unwrap()).unwrap();
            answers[index] = entry["data"].as_str().unwrap().to_owned();
        }
        answers
    }

    /// Runs an accuracy pass that fails: it has no result, one line with the reason, and the logs.
    pub(crate) fn fault(&self, settings: &[&str], environment: &[(&str, &str)]) -> String {
        let ended = self.bench("SingleStream", "AccuracyOnly", settings, environment);
        assert_eq!(ended.code, 3, "{ended:?}");
        assert_eq!(ended.stderr.trim().lines().count(), 1, "{}", ended.stderr);
        ended.stderr
    }
}

/// The right answers.
pub(crate) fn expected() -> Vec<i32> {
    (0..fixture::TOTAL).map(fixture::class).collect()
}

/// Returns the command that builds the missing engine, from what `bench` printed as JSON.
pub(crate) fn missing_engine(printed: &str) -> Vec<String> {
    let message: serde_json::Value = serde_json::from_str(printed).unwrap();
    let words = message["missing_engine"].as_array().unwrap().iter();
    words.map(|word| word.as_str().unwrap().to_owned()).collect()
}
