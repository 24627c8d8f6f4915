//! A model of several networks under the daemon: the device builds an engine for each before the run, describes all of them, and answers as the
//! CPU engine does.

use std::fs;

use regatta_test_support::oracle;
use regatta_tests::{Broker, DEVICE, Lab, mlperf_benchmark::replaced};
use serde_json::Value;

use crate::tensorrt_lab::TensorrtLab;

/// Makes RNN-T with small networks and a made-up dataset in the lab. `None` without the oracle's libraries.
fn lab_with_networks() -> Option<TensorrtLab> {
    let python = oracle::librispeech()?;
    let run = |script: &str, words: &[&std::ffi::OsStr]| oracle::run(&python, "librispeech", script, words);
    let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
    lab.write_benchmark("rnnt", |text| {
        let text = replaced(
            text,
            &[
                ("_samples = 2513", "_samples = 7"),
                ("utterances = 2703", "utterances = 7"),
                ("shape = [1024]", "shape = [32]"),
                ("shape = [320]", "shape = [24]"),
            ],
        );
        let (before, rest) = text.split_once("chapters = [").expect("chapters");
        let (_, after) = rest.split_once("]\n").expect("the end of the list");
        format!("{before}chapters = [\"2277/149896\"]\n{after}")
    });
    let (weights, data) = (
        lab.workspace().join("weights.npz"),
        lab.workspace().join("LibriSpeech"),
    );
    run(
        "rnnt.py",
        &["weights".as_ref(), weights.as_os_str(), "32".as_ref()],
    );
    let networks = lab.scratch().join("models/rnnt");
    run(
        "../../../tools/export-rnnt",
        &[weights.as_os_str(), networks.as_os_str()],
    );
    run("rnnt.py", &["dataset".as_ref(), data.as_os_str()]);
    let _ = lab.json(&["prep", "rnnt", "--data", data.to_str().expect("a path")]);
    let mut tensorrt = TensorrtLab::new(lab);
    tensorrt.lab.device_prefix.push("FAKE_TRT_COMPUTES=1".to_owned());
    Some(tensorrt)
}

/// The words of runs and jobs.
const COMMON: [&str; 12] = [
    "--device",
    DEVICE,
    "--benchmark",
    "rnnt",
    "--scenario",
    "Offline",
    "--round",
    "v4.0",
    "--system",
    "none",
    "--set",
    "batch_size=3",
];

#[test]
fn a_device_builds_an_engine_for_each_network() {
    let Some(mut tensorrt) = lab_with_networks() else {
        return;
    };
    tensorrt.start();
    let end_of = |words: &[&str]| {
        let queued = tensorrt.json(&[words, &COMMON, &["--no-wait"]].concat());
        let run = queued["runs"][0]["run"].as_str().expect("an id").to_owned();
        let ended = tensorrt.end_of(&run);
        assert_eq!(ended["phase"], "done", "{ended:#}");
        (run, ended)
    };
    let accuracy = ["run", "--loadgen", "native", "--mode", "AccuracyOnly", "--engine"];
    let (expected, _) = end_of(&[&accuracy[..], &["tract"]].concat());
    let (run, ended) = end_of(&[&accuracy[..], &["tensorrt"]].concat());
    let answers = tensorrt.answers(&run);
    assert_eq!(answers.len(), 7);
    assert_eq!(answers, tensorrt.answers(&expected));
    let log = fs::read_to_string(tensorrt.directory(&run).join("files/run.log")).expect("the run's log");
    assert_eq!(log.matches("building with TensorRT").count(), 3, "{log}");
    let loaded = ended["loaded_engine"].as_str().expect("engines");
    assert_eq!(loaded.matches(": engine ").count(), 3, "{loaded}");

    let (inspected, _) = end_of(&["engine", "inspect"]);
    let file = tensorrt.directory(&inspected).join("files/engines.json");
    let engines: Value = serde_json::from_slice(&fs::read(file).expect("descriptions")).expect("JSON");
    assert_eq!(engines.as_array().map(Vec::len), Some(3), "{engines:#}");
}
