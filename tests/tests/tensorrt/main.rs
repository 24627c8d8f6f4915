//! Tests of TensorRT under the daemon, over fakes of CUDA's driver and of TensorRT. A real coordinator requests runs in the form
//! of a system's file, and samples are delivered in that form. A lost GPU only ends its run.

#![expect(clippy::expect_used, reason = "test code")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::Output,
};

use regatta_test_support::fake_tensorrt::FakeTensorrt;
use regatta_tests::{Broker, DEVICE, Lab, agent, eventually, succeed_output};
use serde_json::Value;

/// A board's file as NVIDIA publishes its values.
const BOARD: &str = "schema = 1\nname = 'boat'\ntitle = 'Boat'\n[[run]]\nbenchmark = 'digits'\nscenario = 'Offline'\n\
                     source = { measured = 'made up for a test' }\n[run.settings]\ngpu_batch_size = 8\n\
                     input_dtype = 'int8'\ninput_format = 'chw4'\n";

const BATCH: [&str; 2] = ["--batch", "8"];

/// A short run of all samples.
const ACCURACY: [&str; 8] = [
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
struct Place {
    lab: Lab,
    fakes: FakeTensorrt,
}

impl Place {
    fn new(lab: Lab) -> Self {
        let fakes = FakeTensorrt::new();
        let mut place = Self { lab, fakes };
        let variable = |name: &str, value: PathBuf| format!("{name}={}", value.display());
        place.lab.device_prefix = vec![
            "env".to_owned(),
            variable("LD_LIBRARY_PATH", place.fakes.cuda()),
            variable("REGATTA_TENSORRT", place.fakes.libraries()),
            variable("REGATTA_PLUGINS", place.fakes.shims()),
            variable("REGATTA_ENGINES", place.fakes.engines()),
        ];
        place
    }

    /// As `new`, with these faults of CUDA's driver.
    fn with_driver(lab: Lab, faults: &str) -> Self {
        let mut place = Self::new(lab);
        let faults = format!("FAKE_CUDA_FAULTS={faults}");
        place.lab.device_prefix.push(faults);
        place
    }

    /// Starts both sides.
    fn start(&mut self) {
        self.lab.start_coordinator();
        self.lab.start_device();
        self.lab.wait_for_device();
    }

    /// Builds an engine for digits on the device.
    fn build(&self, flags: &[&str]) {
        let model = self.lab.scratch().join("models/digits/digits.onnx");
        let model = model.display().to_string();
        let words = [&["engine", "build", "--onnx", &model], flags].concat();
        let program = agent().display().to_string();
        let mut build = self.fakes.agent(&program, &self.lab.device_directory(), &words);
        let faults = self.lab.device_prefix.iter();
        build.envs(faults.filter_map(|word| word.split_once('=')));
        let _ = succeed_output(&mut build);
    }

    fn json(&self, words: &[&str]) -> Value {
        let output = succeed_output(self.lab.regatta().args(words).args(["--format", "json"]));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Requests runs of digits on TensorRT.
    fn run_command(&self, words: &[&str]) -> Output {
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
    fn queued_runs(&self, words: &[&str]) -> Vec<String> {
        let output = self.run_command(words);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{printed}");
        let requested: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let runs = requested["runs"].as_array().expect("runs");
        let id = |run: &Value| run["run"].as_str().expect("a run").to_owned();
        runs.iter().map(id).collect()
    }

    /// Requests an engine of digits, and returns the build's id.
    fn queued_build(&self, words: &[&str]) -> String {
        let common = [
            "engine",
            "build",
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--system",
            "none",
        ];
        let queued = self.json(&[&common[..], words, &["--no-wait"]].concat());
        queued["runs"][0]["run"].as_str().expect("an id").to_owned()
    }

    /// Returns the result of a run.
    fn end_of(&self, run: &str) -> Value {
        let mut shown = Value::Null;
        eventually(&format!("run {run} to end"), 90, || {
            shown = self.json(&["runs", "show", run]);
            !shown["recorded"].is_null()
        });
        shown
    }

    /// Returns the coordinator's answers of a run, by sample.
    fn answers(&self, run: &str) -> BTreeMap<u64, String> {
        let log = self.directory(run).join("files/mlperf_log_accuracy.json");
        let log: Vec<Value> = serde_json::from_slice(&fs::read(log).expect("a log")).expect("JSON");
        let answer = |entry: &Value| {
            let index = entry["qsl_idx"].as_u64().expect("a sample");
            (index, entry["data"].as_str().expect("an answer").to_owned())
        };
        log.iter().map(answer).collect()
    }

    fn directory(&self, run: &str) -> PathBuf {
        self.lab.workspace().join("runs").join(run)
    }
}

/// Gives the device its own empty scratch directory.
fn apart(lab: &Lab) {
    let config = lab.device_directory().join("agent.toml");
    let text = fs::read_to_string(&config).expect("agent.toml");
    let shared = format!("scratch = \"{}\"", lab.scratch().display());
    assert!(text.contains(&shared), "{text}");
    fs::write(&config, text.replace(&shared, "scratch = \"scratch\"")).expect("agent.toml");
    fs::create_dir_all(lab.device_directory().join("scratch")).expect("a directory of the lab");
}

#[test]
fn samples_travel_in_the_form_that_the_boards_file_names_and_answers_are_those_of_floats() {
    let lab = Lab::secure(Broker::Embedded).expect("the embedded broker needs nothing");
    apart(&lab);
    let mut place = Place::new(lab);
    place.build(&BATCH);
    place.build(&[&BATCH[..], &["--input-dtype", "int8", "--input-format", "chw4"]].concat());
    place.start();
    let board = place.lab.workspace().join("boat.toml");
    fs::write(&board, BOARD).expect("a system's file");
    let board = board.display().to_string();
    let scratch = place.lab.scratch().display().to_string();
    let _ = place.json(&["asset", "add", "--benchmark", "digits"]);

    // The coordinator's float samples are not those that the board needs.
    let offline = ["--scenario", "Offline", "--duration", "300ms", "--system"];
    let refused = place.run_command(&[&offline[..], &[&board]].concat());
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    let prep = "regatta prep digits --dtype int8 --layout chw4 --scale SCALE --out SCRATCH";
    assert!(printed.contains(prep), "{printed}");

    // As the hint says, with the scale that is exact for pixels of 0 to 16, divided by 16.
    let words = prep.replace("SCALE", "0.0625").replace("SCRATCH", &scratch);
    let words: Vec<&str> = words.split(' ').skip(1).collect();
    let made = place.json(&words);
    assert_eq!(
        (&made["form"], &made["clipped"]),
        (&"int8_chw4".into(), &0.into())
    );
    let _ = place.json(&[
        "asset",
        "add",
        "--benchmark",
        "digits",
        "--dtype",
        "int8",
        "--layout",
        "chw4",
    ]);
    let modes = ["--mode", "AccuracyOnly,PerformanceOnly"];
    let bytes = place.queued_runs(&[&offline[..], &[&board], &modes].concat());
    let floats = place.queued_runs(&[&offline[..], &["none", "--mode", "AccuracyOnly"]].concat());
    for run in bytes.iter().chain(&floats) {
        let shown = place.end_of(run);
        assert_eq!(shown["phase"], "done", "{shown:#}");
        let [here, there] = place.lab.hashes(run);
        assert_eq!(here, there, "files of run {run}: coordinator, device");
    }
    let performance = place.end_of(&bytes[1]);
    assert!(
        performance["metric"]["value"].as_f64() > Some(0.0),
        "{performance:#}"
    );
    let spec = fs::read_to_string(place.directory(&bytes[0]).join("spec.json")).expect("a spec");
    let spec: Value = serde_json::from_str(&spec).expect("JSON");
    let benchmark = &spec["benchmark"];
    assert_eq!(benchmark["dataset"]["dir"], "preprocessed_data/digits/int8_chw4");
    assert_eq!(benchmark["model"]["input_format"], "chw4");
    let answers = place.answers(&bytes[0]);
    assert_eq!(answers.len(), 597);
    assert_eq!(answers, place.answers(&floats[0]));
    let needed = spec["assets"]["needed"].as_array().expect("assets");
    let paths: Vec<_> = needed.iter().filter_map(|asset| asset["path"].as_str()).collect();
    let own = [
        "models/digits/digits.onnx",
        "preprocessed_data/digits/int8_chw4",
        "preprocessed_data/digits/val_map.txt",
    ];
    assert_eq!(paths, own, "no other samples travel");
}

#[test]
fn a_device_that_is_lost_ends_its_run_in_the_drivers_own_words_and_no_other() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut place = Place::new(lab);
    place.build(&BATCH);
    place.start();
    // The kernel of a sample in the middle of the run; the daemon itself opens no driver.
    place.fakes.compile_cuda(&["-DFAKE_FAULTS=\"lost=200\""]);
    let lost = place.end_of(&place.queued_runs(&ACCURACY)[0]);
    assert_eq!(lost["phase"], "failed", "{lost:#}");
    let reason = lost["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("CUDA_ERROR_ECC_UNCORRECTABLE (214), uncorrectable ECC error encountered"),
        "{reason}"
    );
    let daemon = place.lab.device.as_mut().expect("it was started");
    assert!(daemon.is_running(), "{}", daemon.output());

    place.fakes.compile_cuda(&[]);
    let run = &place.queued_runs(&ACCURACY)[0];
    let next = place.end_of(run);
    assert_eq!(next["phase"], "done", "{next:#}");
    assert_eq!(place.answers(run).len(), 597);
}

/// Boards have no operator: the first run builds what the next ones use.
#[test]
fn a_missing_engine_is_built_before_the_run_unless_that_is_forbidden() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut place = Place::new(lab);
    place.start();
    let forbidden = [&ACCURACY[..], &["--set", "engine_build=never"]].concat();
    let refused = place.end_of(&place.queued_runs(&forbidden)[0]);
    let reason = refused["reason"].as_str().expect("a reason");
    assert!(
        refused["phase"] == "failed" && reason.contains("hint: regatta-agent engine build --onnx"),
        "{refused:#}"
    );
    let run = &place.queued_runs(&ACCURACY)[0];
    let built = place.end_of(run);
    assert_eq!(built["phase"], "done", "{built:#}");
    assert_eq!(place.answers(run).len(), 597);
    let log =
        |run: &str| fs::read_to_string(place.directory(run).join("files/run.log")).expect("the run's log");
    assert!(log(run).contains("building with TensorRT"), "{}", log(run));
    // The engine stays on the device.
    let next = &place.queued_runs(&forbidden)[0];
    assert_eq!(place.end_of(next)["phase"], "done");
    assert!(!log(next).contains("building with TensorRT"), "{}", log(next));
}

/// A build is a run without LoadGen: queued, watched and recorded as runs are, and never a measurement.
#[test]
fn engines_are_built_before_runs_are_requested() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut place = Place::new(lab);
    place.start();
    let build = [
        "engine",
        "build",
        "--device",
        DEVICE,
        "--benchmark",
        "digits",
        "--scenario",
        "SingleStream,Offline",
        "--system",
        "none",
        "--set",
        "gpu_batch_size=8",
    ];
    let printed = place.json(&[&build[..], &["--dry-run"]].concat());
    assert_eq!(printed["specs"][0]["task"], "engine-build", "{printed:#}");
    let built = place.json(&build);
    let runs = built["runs"].as_array().expect("a run of each scenario");
    assert_eq!(runs.len(), 2, "{built:#}");
    let log = |run: &Value| {
        let directory = place.directory(run["run"].as_str().expect("an id"));
        fs::read_to_string(directory.join("files/run.log")).expect("the run's log")
    };
    // A query of SingleStream is one sample.
    for (run, batch) in runs.iter().zip(["batch 1,", "batch 8,"]) {
        assert_eq!(
            (&run["phase"], &run["task"]),
            (&"done".into(), &"engine-build".into())
        );
        assert_eq!(
            (&run["valid"], &run["cause"]),
            (&Value::Null, &Value::Null),
            "{run:#}"
        );
        assert_eq!(run["markers"], serde_json::json!(["not a result"]));
        let loaded = run["loaded_engine"].as_str().expect("an engine");
        assert!(loaded.contains("engine ") && loaded.contains(batch), "{loaded}");
        assert!(log(run).contains("building with TensorRT"), "{}", log(run));
        let summary = place
            .directory(run["run"].as_str().expect("an id"))
            .join("files/mlperf_log_summary.txt");
        assert!(!summary.exists(), "LoadGen did not run");
    }
    // An existing engine is not built again.
    let again = &place.json(&build)["runs"][1];
    assert_eq!(again["loaded_engine"], runs[1]["loaded_engine"]);
    assert!(!log(again).contains("building with TensorRT"), "{}", log(again));
    let text = |words: &[&str]| {
        let output = succeed_output(place.lab.regatta().args(words));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let shown = text(&["runs", "show", "last"]);
    for expected in [
        "digits, Offline engine build, round",
        "loaded     tensorrt",
        "not a result: its task is engine build, which is no measurement",
    ] {
        assert!(shown.contains(expected), "{shown}");
    }
    let listed = text(&["runs", "list"]);
    assert!(listed.contains("engine build"), "{listed}");

    // A run uses the engine, and no comparison counts the builds.
    let words = ["--scenario", "Offline", "--duration", "300ms", "--system", "none"];
    let settings = ["--set", "gpu_batch_size=8", "--set", "engine_build=never"];
    let run = place.queued_runs(&[&words[..], &settings].concat()).remove(0);
    assert_eq!(place.end_of(&run)["phase"], "done");
    let failed = place.end_of(&place.queued_build(&["--set", "workspace_size=1099511627776"]));
    let reason = failed["reason"].as_str().expect("a reason");
    assert!(
        failed["phase"] == "failed" && reason.starts_with("the run's engine cannot be built by `"),
        "{failed:#}"
    );
}

/// Boards have no operator: the coordinator sees what TensorRT made there.
#[test]
fn devices_calibrate_and_describe_their_engines() {
    let lab = Lab::secure(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut place = Place::new(lab);
    place.start();
    let _ = place.json(&["asset", "add", "--benchmark", "digits"]);
    let job = |verb: &'static str| {
        let common = [
            "--device",
            DEVICE,
            "--benchmark",
            "digits",
            "--scenario",
            "Offline",
            "--system",
            "none",
        ];
        [&["engine", verb], &common[..]].concat()
    };
    let end = |words: &[&str]| {
        let words = [words, &["--no-wait"]].concat();
        let requested = place.json(&words)["runs"][0]["run"]
            .as_str()
            .expect("an id")
            .to_owned();
        place.end_of(&requested)
    };
    let none = end(&job("inspect"));
    let reason = none["reason"].as_str().expect("a reason");
    assert!(
        none["phase"] == "failed" && reason.contains("no engine of models/digits/digits.onnx is in"),
        "{none:#}"
    );

    place.build(&BATCH);
    place.build(&["--batch", "4", "--profiles", "2"]);
    let inspected = end(&job("inspect"));
    assert_eq!(
        (&inspected["phase"], &inspected["task"]),
        (&"done".into(), &"engine-inspection".into()),
        "{inspected:#}"
    );
    let run = inspected["run"].as_str().expect("an id");
    let engines =
        fs::read_to_string(place.directory(run).join("files/engines.json")).expect("the descriptions");
    let engines: Vec<Value> = serde_json::from_str(&engines).expect("JSON");
    let batches: BTreeSet<u64> = engines
        .iter()
        .filter_map(|engine| engine["manifest"]["batch"].as_u64())
        .collect();
    assert_eq!(batches, BTreeSet::from([4, 8]));
    for engine in &engines {
        assert!(
            engine["refusal"].is_null() && !engine["layers"].is_null(),
            "{engine:#}"
        );
    }

    let samples = "preprocessed_data/digits/float32";
    let calibrated = end(&[
        &job("calibrate")[..],
        &["--samples", samples, "--set", "gpu_batch_size=8"],
    ]
    .concat());
    assert_eq!(calibrated["phase"], "done", "{calibrated:#}");
    let files = place
        .directory(calibrated["run"].as_str().expect("an id"))
        .join("files");
    let log = fs::read_to_string(files.join("run.log")).expect("the run's log");
    assert!(log.contains("calibrating over 592 of 597 samples"), "{log}");
    let names = fs::read_dir(&files)
        .expect("the run's files")
        .map(|entry| entry.expect("a file").file_name());
    let scales = names
        .filter(|name| name.to_string_lossy().starts_with("calibration-"))
        .count();
    assert_eq!(scales, 1, "its scales are for other devices");

    // A run takes the engine of this calibration, and not the others.
    let calibration = format!("calibration={samples}");
    let settings = [
        "--set",
        &calibration,
        "--set",
        "gpu_batch_size=8",
        "--set",
        "engine_build=never",
    ];
    let words = [
        "--scenario",
        "Offline",
        "--mode",
        "AccuracyOnly",
        "--system",
        "none",
    ];
    let run = place.queued_runs(&[&words[..], &settings].concat()).remove(0);
    assert_eq!(place.end_of(&run)["phase"], "done");
    assert_eq!(place.answers(&run).len(), 597);
    let missing = place
        .lab
        .regatta()
        .args(job("calibrate"))
        .args(["--samples", "nowhere"])
        .output();
    let missing = missing.expect("regatta runs");
    let printed = String::from_utf8_lossy(&missing.stderr);
    assert!(
        missing.status.code() == Some(2) && printed.contains("nowhere"),
        "{printed}"
    );
}

#[test]
fn an_engine_that_cannot_be_built_fails_its_run_with_the_reason() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut place = Place::new(lab);
    place.start();
    // A build that needs more memory than there is.
    let words = [&ACCURACY[..], &["--set", "workspace_size=1099511627776"]].concat();
    let failed = place.end_of(&place.queued_runs(&words)[0]);
    let reason = failed["reason"].as_str().expect("a reason");
    assert!(
        failed["phase"] == "failed" && reason.starts_with("the run's engine cannot be built by `"),
        "{failed:#}"
    );
}

/// A machine with two GPUs of its own, as a workstation has them.
#[test]
fn two_gpus_are_reported_and_the_generic_rule_uses_them() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut place = Place::with_driver(lab, "discrete,devices=2,sms=58");
    // As many of these small samples as fit into memory, and the rule's two streams.
    place.build(&["--batch", "4096", "--profiles", "2"]);
    place.start();
    let mut listed = Value::Null;
    eventually("the GPUs to be told", 20, || {
        listed = place.json(&["device", "list"])["devices"][0]["facts"]["gpus"].clone();
        !listed.is_null()
    });
    let gpu = serde_json::json!({
        "name": "fake GPU", "compute_capability": "8.7", "multiprocessors": 58, "memory_bytes": 1_u64 << 30, "integrated": false,
    });
    assert_eq!(listed, serde_json::json!([gpu, gpu]));
    let text = |words: &[&str]| {
        let output = succeed_output(place.lab.regatta().args(words));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let list = text(&["device", "list"]);
    assert!(list.contains("GPUs") && list.contains("2 x fake GPU"), "{list}");
    let shown = text(&["device", "show", DEVICE]);
    assert!(
        shown.contains("GPU 1") && shown.contains("58 SMs, compute capability 8.7, 1.1 GB of its own memory"),
        "{shown}"
    );

    let run = &place.queued_runs(&["--scenario", "Offline", "--mode", "AccuracyOnly"])[0];
    let ended = place.end_of(run);
    assert_eq!(ended["phase"], "done", "{ended:#}");
    assert_eq!(place.answers(run).len(), 597);
    let spec = fs::read_to_string(place.directory(run).join("spec.json")).expect("a spec");
    assert!(
        spec.contains("the generic rule for a GPU of 58 SMs, 0 DLA cores and 1 GiB of its own memory"),
        "{spec}"
    );
    let spec: Value = serde_json::from_str(&spec).expect("JSON");
    assert_eq!(spec["engine"]["settings"]["gpu_batch_size"], "4096", "{spec:#}");
}

#[test]
fn a_driver_that_hangs_keeps_no_device_from_saying_hello_and_racing() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut place = Place::with_driver(lab, "hang");
    place.start();
    let sim = [
        "--benchmark",
        "digits",
        "--engine",
        "sim",
        "--scenario",
        "SingleStream",
    ];
    let mut command = place.lab.regatta();
    command.args([
        "run",
        "--device",
        DEVICE,
        "--duration",
        "300ms",
        "--no-wait",
        "--format",
        "json",
    ]);
    let requested = succeed_output(command.args(sim));
    let requested: Value = serde_json::from_slice(&requested.stdout).expect("JSON");
    let run = requested["runs"][0]["run"].as_str().expect("a run");
    let ended = place.end_of(run);
    assert_eq!(ended["phase"], "done", "{ended:#}");
    let daemon = place.lab.device.as_mut().expect("it was started");
    eventually("the daemon to say what is wrong", 20, || {
        daemon
            .output()
            .contains("the GPUs are unknown: CUDA's driver did not respond within 5 s")
    });
    assert!(daemon.is_running(), "{}", daemon.output());
}
