//! Tests 3D-UNet from the published form of its dataset to a staged tree. It makes samples of different sizes, runs on the CPU
//! with the official LoadGen, computes DICE by Regatta and by a script, audits and stages. The dataset is made up and small, and
//! so is the network. Windows are smaller than the reference's.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{collections::BTreeSet, ffi::OsStr};

use regatta_test_support::{
    official_loadgen, oracle,
    small_unet::{Topology, model},
};
use regatta_tests::{
    mlperf_benchmark::{replaced, responses},
    whole_way::{WholeWay, WholeWayCase},
};
use serde_json::Value;

/// The last is a copy, which need not be on disk.
const CASES: [&str; 4] = ["case_00000", "case_00003", "case_00185", "case_00400"];
const TOPOLOGY: Topology = Topology {
    side: 32,
    classes: 3,
    width: 4,
};
const CASE: WholeWayCase = WholeWayCase {
    benchmark: "3d-unet-99",
    model: "3d-unet-99",
    round: "v6.1",
    scenarios: &["SingleStream", "Offline"],
    samples: CASES.len(),
    queries: ["min_query_count=4", "min_query_count=100"],
    setting: "window_batch=2",
    metric: "DICE",
    script: ["kits19", "dice.py"],
};

/// Resizes the benchmark to this dataset.
fn resized(text: String) -> String {
    let text = replaced(
        text,
        &[
            ("total_samples = 43", "total_samples = 4"),
            ("performance_samples = 43", "performance_samples = 4"),
            (
                "input_shape = [1, 128, 128, 128]",
                "input_shape = [1, 32, 32, 32]",
            ),
            ("stride = [64, 64, 64]", "stride = [16, 16, 16]"),
        ],
    );
    // Without these, the file does not parse.
    let (before, rest) = text.split_once("cases = [").unwrap_or_default();
    let (_, after) = rest.split_once("]\n").unwrap_or_default();
    format!("{before}cases = {CASES:?}\n{after}")
}

/// Returns the line that the script prints.
fn dice_line(judged: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap();
    let [mean, kidney, tumour] = [&judged["value"], &judged["classes"][0], &judged["classes"][1]].map(number);
    format!("Accuracy: mean = {mean:.5}, kidney = {kidney:.4}, tumor = {tumour:.4}\n")
}

#[test]
fn unet_from_volumes_to_a_staged_tree() {
    let Some(python) = oracle::kits19() else { return };
    let Some(plugin) = official_loadgen::plugin_file("6.0.17") else {
        return;
    };
    let file = "models/3d-unet-kits19/3dunet_kits19_128x128x128_dynbatch.onnx";
    let network = (file, model(&TOPOLOGY));
    let Some(mut way) = WholeWay::new(CASE, python.clone(), resized, network) else {
        return;
    };
    let data = way.lab.workspace().join("kits19");
    let sizes = [data.as_os_str(), "--side".as_ref(), "30".as_ref()];
    let cases = CASES[..3].iter().map(|case| OsStr::new(*case));
    let arguments: Vec<&OsStr> = sizes.into_iter().chain(cases).collect();
    oracle::run(&python, "kits19", "make_kits.py", &arguments);
    way.prepare(&data);
    way.start(Some(&plugin));
    let log = way.lab.accuracy_log(&way.first_run());
    let found = responses(&log);
    assert_eq!(found.len(), CASES.len());
    assert_eq!(found[&2], found[&3], "one is the copy of the other");
    let sizes: BTreeSet<usize> = found.values().map(String::len).collect();
    assert!(sizes.len() > 1, "volumes differ in size: {sizes:?}");
    // The network's results become the truth.
    let segmentations = way.lab.scratch().join("preprocessed_data/KiTS19/segmentations");
    let arguments = [log.as_os_str(), segmentations.as_os_str()];
    oracle::run(&python, "kits19", "annotate.py", &arguments);

    let mut line = String::new();
    for scenario in ["SingleStream", "Offline"] {
        let (accuracy, printed) = way.measure_scenario(scenario, dice_line);
        assert_eq!(responses(&way.lab.accuracy_log(&accuracy)), found, "{scenario}");
        line = printed;
    }
    way.audit(&["TEST01"]);
    way.stage(&line);
}
