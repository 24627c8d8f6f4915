//! Tests of TensorRT under the daemon, over fakes of CUDA's driver and of TensorRT. A real coordinator requests runs in the form
//! of a system's file, and samples are delivered in that form. A lost GPU only ends its run.

#![expect(clippy::expect_used, reason = "test code")]

mod engine_jobs;
mod networks;
mod tensorrt_lab;

use std::fs;

use regatta_tests::{Broker, DEVICE, Lab, eventually, succeed_output};
use serde_json::Value;

use self::tensorrt_lab::{ACCURACY, BATCH, TensorrtLab, give_own_scratch};

/// A board's file as NVIDIA publishes its values.
const BOARD: &str = "schema = 1\nname = 'boat'\ntitle = 'Boat'\n[[run]]\nbenchmark = 'digits'\nscenario = 'Offline'\n\
                     source = { measured = 'made up for a test' }\n[run.settings]\ngpu_batch_size = 8\n\
                     input_dtype = 'int8'\ninput_format = 'chw4'\n";

#[test]
fn samples_travel_in_the_form_that_the_boards_file_names_and_answers_are_those_of_floats() {
    let lab = Lab::secure(Broker::Embedded).expect("the embedded broker needs nothing");
    give_own_scratch(&lab);
    let mut tensorrt = TensorrtLab::new(lab);
    tensorrt.build(&BATCH);
    tensorrt.build(&[&BATCH[..], &["--input-dtype", "int8", "--input-format", "chw4"]].concat());
    tensorrt.start();
    let board = tensorrt.lab.workspace().join("boat.toml");
    fs::write(&board, BOARD).expect("a system's file");
    let board = board.display().to_string();
    let scratch = tensorrt.lab.scratch().display().to_string();
    let _ = tensorrt.json(&["asset", "add", "--benchmark", "digits"]);

    // The coordinator's float samples are not those that the board needs.
    let offline = ["--scenario", "Offline", "--duration", "300ms", "--system"];
    let refused = tensorrt.run_command(&[&offline[..], &[&board]].concat());
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{printed}");
    let prep = "regatta prep digits --dtype int8 --layout chw4 --scale SCALE --output SCRATCH";
    assert!(printed.contains(prep), "{printed}");

    // As the hint says, with the scale that is exact for pixels of 0 to 16, divided by 16.
    let words = prep.replace("SCALE", "0.0625").replace("SCRATCH", &scratch);
    let words: Vec<&str> = words.split(' ').skip(1).collect();
    let made = tensorrt.json(&words);
    assert_eq!(
        (&made["form"], &made["clipped"]),
        (&"int8_chw4".into(), &0.into())
    );
    let _ = tensorrt.json(&[
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
    let bytes = tensorrt.queued_runs(&[&offline[..], &[&board], &modes].concat());
    let floats = tensorrt.queued_runs(&[&offline[..], &["none", "--mode", "AccuracyOnly"]].concat());
    for run in bytes.iter().chain(&floats) {
        let shown = tensorrt.end_of(run);
        assert_eq!(shown["phase"], "done", "{shown:#}");
        let [here, there] = tensorrt.lab.hashes(run);
        assert_eq!(here, there, "files of run {run}: coordinator, device");
    }
    let performance = tensorrt.end_of(&bytes[1]);
    assert!(
        performance["metric"]["value"].as_f64() > Some(0.0),
        "{performance:#}"
    );
    let spec = fs::read_to_string(tensorrt.directory(&bytes[0]).join("spec.json")).expect("a spec");
    let spec: Value = serde_json::from_str(&spec).expect("JSON");
    let benchmark = &spec["benchmark"];
    assert_eq!(benchmark["dataset"]["dir"], "preprocessed_data/digits/int8_chw4");
    assert_eq!(benchmark["model"]["input_format"], "chw4");
    let answers = tensorrt.answers(&bytes[0]);
    assert_eq!(answers.len(), 597);
    assert_eq!(answers, tensorrt.answers(&floats[0]));
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
fn lost_cuda_device_fails_only_its_run_with_the_drivers_message() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut tensorrt = TensorrtLab::new(lab);
    tensorrt.build(&BATCH);
    tensorrt.start();
    // The kernel of a sample in the middle of the run; the daemon itself opens no driver.
    tensorrt.fakes.compile_cuda(&["-DFAKE_FAULTS=\"lost=200\""]);
    let lost = tensorrt.end_of(&tensorrt.queued_runs(&ACCURACY)[0]);
    assert_eq!(lost["phase"], "failed", "{lost:#}");
    let reason = lost["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("CUDA_ERROR_ECC_UNCORRECTABLE (214), uncorrectable ECC error encountered"),
        "{reason}"
    );
    let daemon = tensorrt.lab.device.as_mut().expect("it was started");
    assert!(daemon.is_running(), "{}", daemon.output());

    tensorrt.fakes.compile_cuda(&[]);
    let run = &tensorrt.queued_runs(&ACCURACY)[0];
    let next = tensorrt.end_of(run);
    assert_eq!(next["phase"], "done", "{next:#}");
    assert_eq!(tensorrt.answers(run).len(), 597);
}

/// A machine with two GPUs of its own, as a workstation has them.
#[test]
fn two_gpus_are_reported_and_the_generic_rule_uses_them() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut tensorrt = TensorrtLab::with_driver(lab, "discrete,devices=2,sms=58");
    // As many of these small samples as fit into memory, and the rule's two streams.
    tensorrt.build(&["--batch", "4096", "--profiles", "2"]);
    tensorrt.start();
    let mut listed = Value::Null;
    eventually("the GPUs to be told", 20, || {
        listed = tensorrt.json(&["device", "list"])["devices"][0]["facts"]["gpus"].clone();
        !listed.is_null()
    });
    let gpu = serde_json::json!({
        "name": "fake GPU", "compute_capability": "8.7", "multiprocessors": 58, "memory_bytes": 1_u64 << 30, "integrated": false,
    });
    assert_eq!(listed, serde_json::json!([gpu, gpu]));
    let text = |words: &[&str]| {
        let output = succeed_output(tensorrt.lab.regatta().args(words));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let list = text(&["device", "list"]);
    assert!(list.contains("GPUs") && list.contains("2 x fake GPU"), "{list}");
    let shown = text(&["device", "show", DEVICE]);
    assert!(
        shown.contains("GPU 1") && shown.contains("58 SMs, compute capability 8.7, 1.1 GB of its own memory"),
        "{shown}"
    );

    let run = &tensorrt.queued_runs(&["--scenario", "Offline", "--mode", "AccuracyOnly"])[0];
    let ended = tensorrt.end_of(run);
    assert_eq!(ended["phase"], "done", "{ended:#}");
    assert_eq!(tensorrt.answers(run).len(), 597);
    let spec = fs::read_to_string(tensorrt.directory(run).join("spec.json")).expect("a spec");
    assert!(
        spec.contains("the generic rule for a GPU of 58 SMs, 0 DLA cores and 1 GiB of its own memory"),
        "{spec}"
    );
    let spec: Value = serde_json::from_str(&spec).expect("JSON");
    assert_eq!(spec["engine"]["settings"]["gpu_batch_size"], 4096, "{spec:#}");
}

#[test]
fn a_driver_that_hangs_keeps_no_device_from_saying_hello_and_executing_runs() {
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    let mut tensorrt = TensorrtLab::with_driver(lab, "hang");
    tensorrt.start();
    let sim = [
        "--benchmark",
        "digits",
        "--engine",
        "sim",
        "--scenario",
        "SingleStream",
    ];
    let mut command = tensorrt.lab.regatta();
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
    let ended = tensorrt.end_of(run);
    assert_eq!(ended["phase"], "done", "{ended:#}");
    let daemon = tensorrt.lab.device.as_mut().expect("it was started");
    eventually("the daemon to say what is wrong", 20, || {
        daemon
            .output()
            .contains("the GPUs are unknown: CUDA's driver did not respond within 10 s")
    });
    assert!(daemon.is_running(), "{}", daemon.output());
}
