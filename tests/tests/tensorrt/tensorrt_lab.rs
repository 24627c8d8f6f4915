//! A lab whose device has fakes of CUDA's driver and of TensorRT, and what the tests request of it.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Output};

use regatta_test_support::fake_tensorrt::FakeTensorrt;
use regatta_tests::{DEVICE, Lab, agent, eventually, succeed_output};
use serde_json::Value;

pub(crate) const BATCH: [&str; 2] = ["--batch", "8"];

/// A short run of all samples.
pub(crate) const ACCURACY: [&str; 8] = [
    "--scenario",
    "SingleStream",
    "--mode",
    "AccuracyOnly",
    "--system",
    "none",
    "--set",
    "warmup_duration=0",
];

/// A lab whose device finds the fakes.
pub(crate) struct TensorrtLab {
    pub(crate) lab: Lab,
    pub(crate) fakes: FakeTensorrt,
}

impl TensorrtLab {
    pub(crate) fn new(lab: Lab) -> Self {
        let fakes = FakeTensorrt::new();
        let mut tensorrt = Self { lab, fakes };
        let variable = |name: &str, value: PathBuf| format!("{name}={}", value.display());
        tensorrt.lab.device_prefix = vec![
            "env".to_owned(),
            variable("LD_LIBRARY_PATH", tensorrt.fakes.cuda()),
            variable("REGATTA_TENSORRT", tensorrt.fakes.libraries()),
            variable("REGATTA_PLUGINS", tensorrt.fakes.shims()),
            variable("REGATTA_ENGINES", tensorrt.fakes.engines()),
        ];
        tensorrt
    }

    /// As `new`, with these faults of CUDA's driver.
    pub(crate) fn with_driver(lab: Lab, faults: &str) -> Self {
        let mut tensorrt = Self::new(lab);
        let faults = format!("FAKE_CUDA_FAULTS={faults}");
        tensorrt.lab.device_prefix.push(faults);
        tensorrt
    }

    /// Starts both sides.
    pub(crate) fn start(&mut self) {
        self.lab.start_coordinator();
        self.lab.start_device();
        self.lab.wait_for_device();
    }

    /// Builds an engine for digits on the device.
    pub(crate) fn build(&self, flags: &[&str]) {
        let model = self.lab.scratch().join("models/digits/digits.onnx");
        let model = model.display().to_string();
        let words = [&["engine", "build", "--onnx", &model], flags].concat();
        let program = agent().display().to_string();
        let mut build = self.fakes.agent(&program, &self.lab.device_directory(), &words);
        let faults = self.lab.device_prefix.iter();
        build.envs(faults.filter_map(|word| word.split_once('=')));
        let _ = succeed_output(&mut build);
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let output = succeed_output(self.lab.regatta().args(words).args(["--format", "json"]));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Requests runs of digits on TensorRT.
    pub(crate) fn run_command(&self, words: &[&str]) -> Output {
        let common = [
            "run",
            "--device",
            DEVICE,
            "--benchmark",
            "digits",
            "--engine",
            "tensorrt",
        ];
        let mut command = self.lab.regatta();
        command
            .args(common)
            .args(words)
            .args(["--no-wait", "--format", "json"]);
        command.output().expect("regatta runs")
    }

    /// Requests runs and returns their ids.
    pub(crate) fn queued_runs(&self, words: &[&str]) -> Vec<String> {
        let output = self.run_command(words);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}");
        let requested: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let runs = requested["runs"].as_array().expect("runs");
        let id = |run: &Value| run["run"].as_str().expect("a run").to_owned();
        runs.iter().map(id).collect()
    }

    /// Requests a job of `regatta engine` for digits, and returns its result.
    pub(crate) fn engine_job(&self, verb: &str, words: &[&str]) -> Value {
        let common = [
            "engine",
            verb,
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--system",
            "none",
        ];
        let queued = self.json(&[&common[..], words, &["--no-wait"]].concat());
        self.end_of(queued["runs"][0]["run"].as_str().expect("an id"))
    }

    /// Returns the result of a run.
    pub(crate) fn end_of(&self, run: &str) -> Value {
        let mut shown = Value::Null;
        eventually(&format!("run {run} to end"), 90, || {
            shown = self.json(&["runs", "show", run]);
            !shown["recorded"].is_null()
        });
        shown
    }

    /// Returns the coordinator's answers of a run, by sample.
    pub(crate) fn answers(&self, run: &str) -> BTreeMap<u64, String> {
        let log = self.directory(run).join("files/mlperf_log_accuracy.json");
        let log: Vec<Value> = serde_json::from_slice(&fs::read(log).expect("a log")).expect("JSON");
        let answer = |entry: &Value| {
            let index = entry["qsl_idx"].as_u64().expect("a sample");
            (index, entry["data"].as_str().expect("an answer").to_owned())
        };
        log.iter().map(answer).collect()
    }

    pub(crate) fn directory(&self, run: &str) -> PathBuf {
        self.lab.workspace().join("runs").join(run)
    }
}

/// Gives the device its own empty scratch directory.
pub(crate) fn give_own_scratch(lab: &Lab) {
    let config = lab.device_directory().join("agent.toml");
    let text = fs::read_to_string(&config).expect("agent.toml");
    let shared = format!("scratch = \"{}\"", lab.scratch().display());
    assert!(text.contains(&shared), "{text}");
    fs::write(&config, text.replace(&shared, "scratch = \"scratch\"")).expect("agent.toml");
    fs::create_dir_all(lab.device_directory().join("scratch")).expect("a directory of the lab");
}
