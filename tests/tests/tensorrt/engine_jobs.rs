//! Engines that devices build, calibrate and describe, by themselves or as jobs of the coordinator.

use std::{collections::BTreeSet, fs, path::PathBuf};

use regatta_tests::{Broker, DEVICE, Lab, eventually, json_schema::command_findings, succeed_output};
use serde_json::Value;

use crate::tensorrt_lab::{ACCURACY, BATCH, TensorrtLab, give_own_scratch};

/// Boards have no operator: the first run builds what the next ones use.
#[test]
fn a_missing_engine_is_built_before_the_run_unless_that_is_forbidden() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut tensorrt = TensorrtLab::new(lab);
    tensorrt.start();
    let forbidden = [&ACCURACY[..], &["--set", "engine_build=never"]].concat();
    let refused = tensorrt.end_of(&tensorrt.queued_runs(&forbidden)[0]);
    let reason = refused["reason"].as_str().expect("a reason");
    assert!(
        refused["phase"] == "failed" && reason.contains("hint: regatta-agent engine build --onnx"),
        "{refused:#}"
    );
    let run = &tensorrt.queued_runs(&ACCURACY)[0];
    let built = tensorrt.end_of(run);
    assert_eq!(built["phase"], "done", "{built:#}");
    assert_eq!(tensorrt.answers(run).len(), 597);
    let log =
        |run: &str| fs::read_to_string(tensorrt.directory(run).join("files/run.log")).expect("the run's log");
    assert!(log(run).contains("building with TensorRT"), "{}", log(run));
    // The engine stays on the device.
    let next = &tensorrt.queued_runs(&forbidden)[0];
    assert_eq!(tensorrt.end_of(next)["phase"], "done");
    assert!(!log(next).contains("building with TensorRT"), "{}", log(next));
}

/// A build is a run without LoadGen: queued, watched and recorded as runs are, and never a measurement.
#[test]
fn engines_are_built_before_runs_are_requested() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut tensorrt = TensorrtLab::new(lab);
    tensorrt.start();
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
    let printed = tensorrt.json(&[&build[..], &["--dry-run"]].concat());
    assert_eq!(printed["specs"][0]["task"], "engine-build", "{printed:#}");
    let built = tensorrt.json(&build);
    let runs = built["runs"].as_array().expect("a run of each scenario");
    assert_eq!(runs.len(), 2, "{built:#}");
    let log = |run: &Value| {
        let directory = tensorrt.directory(run["run"].as_str().expect("an id"));
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
        let summary = tensorrt
            .directory(run["run"].as_str().expect("an id"))
            .join("files/mlperf_log_summary.txt");
        assert!(!summary.exists(), "LoadGen did not run");
    }
    // An existing engine is not built again.
    let again = &tensorrt.json(&build)["runs"][1];
    assert_eq!(again["loaded_engine"], runs[1]["loaded_engine"]);
    assert!(!log(again).contains("building with TensorRT"), "{}", log(again));
    let text = |words: &[&str]| {
        let output = succeed_output(tensorrt.lab.regatta().args(words));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let shown = text(&["runs", "show", "last"]);
    for expected in [
        "digits, Offline engine build, round",
        "loaded     tensorrt",
        "not a result: its task is engine build, which is not a measurement",
    ] {
        assert!(shown.contains(expected), "{shown}");
    }
    let listed = text(&["runs", "list"]);
    assert!(listed.contains("engine build"), "{listed}");

    // A run uses the engine, and no comparison counts the builds.
    let words = ["--scenario", "Offline", "--duration", "300ms", "--system", "none"];
    let settings = ["--set", "gpu_batch_size=8", "--set", "engine_build=never"];
    let run = tensorrt.queued_runs(&[&words[..], &settings].concat()).remove(0);
    assert_eq!(tensorrt.end_of(&run)["phase"], "done");
}

/// Boards have no operator: the coordinator sees what TensorRT made there.
#[test]
fn devices_calibrate_and_describe_their_engines() {
    let lab = Lab::secure(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut tensorrt = TensorrtLab::new(lab);
    tensorrt.start();
    let _ = tensorrt.json(&["asset", "add", "--benchmark", "digits"]);
    // The network has no scales, and digits has no published calibration list.
    let words = [
        "--scenario",
        "Offline",
        "--system",
        "none",
        "--set",
        "precision=int8",
    ];
    let refused = tensorrt.run_command(&words);
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(2)
            && printed.contains("select int8 engines for digits, which need scales"),
        "{printed}"
    );
    let none = tensorrt.engine_job("inspect", &[]);
    let reason = none["reason"].as_str().expect("a reason");
    assert!(
        none["phase"] == "failed" && reason.contains("no engine of models/digits/digits.onnx is in"),
        "{none:#}"
    );

    tensorrt.build(&BATCH);
    tensorrt.build(&["--batch", "4", "--profiles", "2"]);
    let inspected = tensorrt.engine_job("inspect", &[]);
    assert_eq!(
        (&inspected["phase"], &inspected["task"]),
        (&"done".into(), &"engine-inspection".into()),
        "{inspected:#}"
    );
    let run = inspected["run"].as_str().expect("an id");
    let engines =
        fs::read_to_string(tensorrt.directory(run).join("files/engines.json")).expect("the descriptions");
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
    let words = ["--samples", samples, "--set", "gpu_batch_size=8"];
    let calibrated = tensorrt.engine_job("calibrate", &words);
    assert_eq!(calibrated["phase"], "done", "{calibrated:#}");
    let files = tensorrt
        .directory(calibrated["run"].as_str().expect("an id"))
        .join("files");
    let log = fs::read_to_string(files.join("run.log")).expect("the run's log");
    assert!(
        log.contains("calibrating over 597 samples in batches of 3"),
        "{log}"
    );
    let scales: Vec<PathBuf> = fs::read_dir(&files)
        .expect("the run's files")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cache"))
        .collect();
    let [scales] = &scales[..] else {
        panic!("one calibration has one file: {scales:?}");
    };

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
    let run = tensorrt.queued_runs(&[&words[..], &settings].concat()).remove(0);
    assert_eq!(tensorrt.end_of(&run)["phase"], "done");
    assert_eq!(tensorrt.answers(&run).len(), 597);
    // On request, the device calibrates again and replaces the engine.
    let settings = ["--set", &calibration, "--set", "gpu_batch_size=8"];
    let log_of = |job: &Value| {
        assert_eq!(job["phase"], "done", "{job:#}");
        let run = job["run"].as_str().expect("an id");
        fs::read_to_string(tensorrt.directory(run).join("files/run.log")).expect("the run's log")
    };
    let reused = log_of(&tensorrt.engine_job("build", &settings));
    assert!(!reused.contains("calibrating"), "{reused}");
    let forced = [&settings[..], &["--force-calibration"]].concat();
    let calibrated_again = log_of(&tensorrt.engine_job("build", &forced));
    assert!(
        calibrated_again.contains("calibrating over 597 samples"),
        "{calibrated_again}"
    );
    // A run calibrates in a build of its own, and then uses the engine.
    let forced = [&words[..], &settings, &["--force-calibration"]].concat();
    let [build, run] = tensorrt.queued_runs(&forced).try_into().expect("two runs");
    assert!(log_of(&tensorrt.end_of(&build)).contains("calibrating over 597 samples"));
    assert!(!log_of(&tensorrt.end_of(&run)).contains("calibrating"));
    // Its scales serve other devices as an asset.
    let scales = scales.display().to_string();
    let _ = tensorrt.json(&["asset", "add", &scales, "--at", "calibration/digits.cache"]);
    let of_scales = [
        "--set",
        "calibration=calibration/digits.cache",
        "--set",
        "gpu_batch_size=8",
    ];
    let run = tensorrt.queued_runs(&[&words[..], &of_scales].concat()).remove(0);
    let ended = tensorrt.end_of(&run);
    assert_eq!(ended["phase"], "done", "{ended:#}");
    let log = fs::read_to_string(tensorrt.directory(&run).join("files/run.log")).expect("the run's log");
    assert!(
        log.contains("building with TensorRT") && !log.contains("calibrating"),
        "{log}"
    );
    let words = [
        "engine",
        "calibrate",
        "--benchmark",
        "digits",
        "--scenario",
        "Offline",
        "--samples",
        "nowhere",
    ];
    let missing = tensorrt.lab.regatta().args(words).output().expect("regatta runs");
    let printed = String::from_utf8_lossy(&missing.stderr);
    assert!(
        missing.status.code() == Some(2) && printed.contains("nowhere"),
        "{printed}"
    );
}

/// NVIDIA's settings for 3D-UNet name a method, and those of some boards select other engines than int8.
#[test]
fn calibration_takes_the_method_of_the_boards_settings_and_makes_int8_engines() {
    let lab = Lab::secure(Broker::Embedded).expect("the embedded broker needs nothing");
    let systems = lab.workspace().join("configs/systems");
    fs::create_dir_all(&systems).expect("a directory");
    let row = |scenario: &str, settings: &str| {
        format!(
            "[[run]]\nbenchmark = 'digits'\nscenario = '{scenario}'\nsource = {{ measured = 'today' }}\n[run.settings]\n{settings}\n"
        )
    };
    let text = [
        "schema = 1\nname = 'unet-board'\ntitle = 'A board'\n".to_owned(),
        row(
            "Offline",
            "gpu_batch_size = 8\nprecision = 'int8'\ncalibration_method = 'min-max'",
        ),
        row("SingleStream", "precision = 'fp16'"),
    ];
    fs::write(systems.join("unet-board.toml"), text.concat()).expect("a file");
    let mut tensorrt = TensorrtLab::new(lab);
    tensorrt.start();
    let _ = tensorrt.json(&["asset", "add", "--benchmark", "digits"]);
    let calibrate = "engine calibrate --benchmark digits --system unet-board --samples preprocessed_data/digits/float32 --scenario";
    let calibrate: Vec<&str> = calibrate.split(' ').collect();

    let queued = tensorrt.json(&[&calibrate[..], &["Offline", "--no-wait"]].concat());
    let ended = tensorrt.end_of(queued["runs"][0]["run"].as_str().expect("an id"));
    assert_eq!(ended["phase"], "done", "{ended:#}");
    let files = tensorrt
        .directory(ended["run"].as_str().expect("an id"))
        .join("files");
    let scales = fs::read_dir(&files)
        .expect("the run's files")
        .map(|entry| entry.expect("a file").path())
        .find(|path| path.extension().is_some_and(|extension| extension == "cache"))
        .expect("scales");
    let scales = fs::read_to_string(scales).expect("scales");
    assert!(scales.starts_with("TRT-8502-MinMaxCalibration\n"), "{scales}");

    let words = [&calibrate[..], &["SingleStream", "--dry-run"]].concat();
    let planned = tensorrt.json(&words);
    let settings = &planned["specs"][0]["engine"]["settings"];
    assert_eq!(settings["precision"], "int8", "{planned:#}");
    let words = [&calibrate[..], &["SingleStream", "--set", "precision=fp16"]].concat();
    let refused = tensorrt.lab.regatta().args(words).output().expect("regatta runs");
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && printed.contains("`--set precision=fp16` requests others"),
        "{printed}"
    );
}

/// Its scratch directory is empty, and its runs see links to assets.
#[test]
fn a_fresh_device_keeps_the_engines_that_its_runs_build() {
    let lab = Lab::secure(Broker::Embedded).expect("the embedded broker needs nothing");
    give_own_scratch(&lab);
    let mut tensorrt = TensorrtLab::new(lab);
    tensorrt
        .lab
        .device_prefix
        .retain(|word| !word.starts_with("REGATTA_ENGINES="));
    tensorrt.start();
    let _ = tensorrt.json(&["asset", "add", "--benchmark", "digits"]);
    let built = tensorrt.engine_job("build", &["--set", "gpu_batch_size=8"]);
    assert_eq!(built["phase"], "done", "{built:#}");
    let inspected = tensorrt.engine_job("inspect", &[]);
    assert_eq!(inspected["phase"], "done", "{inspected:#}");
    let kept = tensorrt.lab.device_directory().join("scratch/engines");
    assert!(
        fs::read_dir(&kept)
            .expect("the device's engines")
            .next()
            .is_some(),
        "{}",
        kept.display()
    );
}

/// Nobody works at a board, so engines that fill its disk must be listed and removed from the workstation.
#[test]
fn engines_of_a_device_are_listed_and_removed() {
    let lab = Lab::secure(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut tensorrt = TensorrtLab::new(lab);
    tensorrt.start();
    tensorrt.build(&BATCH);
    tensorrt.build(&["--batch", "4"]);
    let keys = || -> Vec<String> {
        let listed = tensorrt.json(&["engine", "list", "--device", DEVICE]);
        assert_eq!(command_findings(&listed, "engines"), [] as [&str; 0]);
        let engines = listed["engines"].as_array().expect("engines").iter();
        engines
            .filter_map(|engine| Some(engine["key"].as_str()?.to_owned()))
            .collect()
    };
    let present = keys();
    assert_eq!(present.len(), 2);
    let removed = tensorrt.json(&["engine", "remove", "--device", DEVICE, &present[0]]);
    let run = removed["runs"][0]["run"].as_str().expect("an id").to_owned();
    let shown = tensorrt.end_of(&run);
    assert_eq!(
        (&shown["phase"], &shown["task"]),
        (&"done".into(), &"engine-removal".into()),
        "{shown:#}"
    );
    let kept =
        fs::read_to_string(tensorrt.directory(&run).join("files/removed-engines.json")).expect("a file");
    assert_eq!(kept, format!("[\"{}\"]", present[0]));
    assert_eq!(keys(), present[1..]);
    let words = [
        "engine",
        "remove",
        "--device",
        DEVICE,
        &present[0],
        "--format",
        "json",
    ];
    let again = tensorrt.lab.regatta().args(words).output().expect("regatta runs");
    assert!(!again.status.success());
    // A device lists 64 engines at most, also those that cannot be read.
    for number in 0..140 {
        let directory = tensorrt.fakes.engines().join(format!("{number:016x}"));
        fs::create_dir(&directory).expect("a directory of the cache");
        fs::write(directory.join("engine.json"), "{}").expect("a file");
    }
    assert_eq!(keys().len(), 64);
    let removed = tensorrt.json(&["engine", "remove", "--device", DEVICE, "--all"]);
    assert_eq!(removed["runs"].as_array().expect("runs").len(), 3, "{removed:#}");
    assert!(keys().is_empty());
}

/// The default is the best engine of a device: TensorRT with a GPU and a shim, and the CPU engine without the shim.
#[test]
fn a_device_uses_tensorrt_by_default_if_its_shim_is_there() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut tensorrt = TensorrtLab::new(lab);
    tensorrt.start();
    let default_engine =
        |tensorrt: &TensorrtLab| tensorrt.json(&["device", "show", DEVICE])["default_engine"].clone();
    eventually("the GPU to be reported", 20, || {
        default_engine(&tensorrt) == "tensorrt"
    });

    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut tensorrt = TensorrtLab::new(lab);
    fs::remove_dir_all(tensorrt.fakes.shims()).expect("the shims");
    tensorrt.start();
    let mut shown = Value::Null;
    eventually("the GPU to be reported", 20, || {
        shown = tensorrt.json(&["device", "show", DEVICE]);
        shown["facts"]["gpus"].is_array()
    });
    assert_eq!(shown["default_engine"], "tract", "{shown:#}");
    let obstacle = shown["unavailable_engines"]["tensorrt"]
        .as_str()
        .expect("a reason");
    assert!(
        obstacle.contains("TensorRT 8.5.2 is installed, but there is no shim for it"),
        "{obstacle}"
    );
}

#[test]
fn an_engine_that_cannot_be_built_fails_its_run_with_the_reason() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut tensorrt = TensorrtLab::new(lab);
    // The network has a layer from a plug-in that no setting names.
    tensorrt.lab.device_prefix.push("FAKE_TRT_PLUGIN=1".to_owned());
    tensorrt.start();
    let run = tensorrt.end_of(&tensorrt.queued_runs(&ACCURACY)[0]);
    let job = tensorrt.engine_job("build", &[]);
    for failed in [run, job] {
        let reason = failed["reason"].as_str().expect("a reason");
        assert!(
            failed["phase"] == "failed" && reason.starts_with("the run's engine cannot be built by `"),
            "{failed:#}"
        );
    }
}
