//! 3D-UNet from the published form of its dataset to a staged tree: volumes with segmentations, samples of different sizes, runs on the CPU
//! with the official LoadGen, DICE by Regatta and by a script, the audit, and staging. The dataset is made up and small, and so is the
//! network. Windows are smaller than the reference's.

use std::fs;

use regatta_test_support::{
    official_loadgen, oracle,
    small_unet::{Topology, model},
    tree,
};
use regatta_tests::{
    Broker, Lab,
    mlperf_benchmark::{replaced, responses},
    printed,
};
use serde_json::{Value, json};

/// The last is a copy, which need not be on disk.
const CASES: [&str; 4] = ["case_00000", "case_00003", "case_00185", "case_00400"];
const TOPOLOGY: Topology = Topology {
    side: 32,
    classes: 3,
    width: 4,
};
const ROUND: &str = "v6.1";

/// The official LoadGen, short.
const SHORT: [&str; 8] = with_queries("min_query_count=4");
/// Enough queries for a valid run, which an audit repeats.
const VALID: [&str; 8] = with_queries("min_query_count=100");

const fn with_queries(count: &str) -> [&str; 8] {
    [
        "--loadgen",
        "official",
        "--round",
        ROUND,
        "--conf",
        count,
        "--set",
        "window_batch=2",
    ]
}

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

#[test]
fn unet_goes_from_volumes_to_a_staged_tree() {
    let Some(python) = oracle::kits19() else { return };
    let Some(plugin) = official_loadgen::plugin_file("6.0.17") else {
        return;
    };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let data = lab.workspace().join("kits19");
    let mut arguments = vec![data.as_os_str(), "--side".as_ref(), "30".as_ref()];
    arguments.extend(
        CASES[..3]
            .iter()
            .map(|case| <_ as AsRef<std::ffi::OsStr>>::as_ref(*case)),
    );
    oracle::run(&python, "kits19", "make_kits.py", &arguments);
    lab.write_benchmark("3d-unet-99", resized);
    let file = lab
        .scratch()
        .join("models/3d-unet-kits19/3dunet_kits19_128x128x128_dynbatch.onnx");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, model(&TOPOLOGY)).unwrap();

    let states = || lab.benchmark_files("3d-unet-99");
    assert_eq!(states(), ["present", "missing", "missing", "missing"]);
    let prep = ["prep", "3d-unet", "--data", data.to_str().unwrap()];
    assert_eq!(lab.json(&prep)["samples"], CASES.len());
    assert_eq!(lab.json(&prep)["unchanged"], CASES.len());
    assert_eq!(states(), ["present"; 4]);

    let plugins = plugin.parent().unwrap().display();
    lab.device_prefix = vec!["env".to_owned(), format!("REGATTA_PLUGINS={plugins}")];
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let first = lab.measure("3d-unet-99", ["SingleStream", "AccuracyOnly"], &SHORT);
    let found = responses(&lab.accuracy_log(&first));
    assert_eq!(found.len(), CASES.len());
    assert_eq!(found[&2], found[&3], "one is the copy of the other");
    let sizes: std::collections::BTreeSet<usize> = found.values().map(String::len).collect();
    assert!(sizes.len() > 1, "volumes differ in size: {sizes:?}");
    let script = oracle::directory("kits19").join("dice.py");
    let judge = |run: &Value| {
        let log = lab.accuracy_log(run);
        let words = ["accuracy", "3d-unet-99", "--log", log.to_str().unwrap()];
        let official = [
            "--official",
            script.to_str().unwrap(),
            "--python",
            python.to_str().unwrap(),
        ];
        let judged = lab.judged(&[&words[..], &official].concat());
        assert_eq!(judged["accuracy"][0]["official"]["agrees"], true, "{judged:#}");
        judged["accuracy"][0].clone()
    };
    let by_chance = judge(&first);
    assert!(
        by_chance["value"].as_f64() < by_chance["target"].as_f64(),
        "{by_chance:#}"
    );
    let log = lab.accuracy_log(&first);
    let segmentations = lab.scratch().join("preprocessed_data/KiTS19/segmentations");
    let arguments = [log.as_os_str(), segmentations.as_os_str()];
    oracle::run(&python, "kits19", "annotate.py", &arguments);

    let mut expected = String::new();
    for scenario in ["SingleStream", "Offline"] {
        let accuracy = lab.measure("3d-unet-99", [scenario, "AccuracyOnly"], &SHORT);
        let log = lab.accuracy_log(&accuracy);
        assert_eq!(responses(&log), found);
        let judged = judge(&accuracy);
        let value = judged["value"].as_f64().unwrap();
        assert!((0.86..1.0).contains(&value), "{judged:#}");
        assert_eq!(
            (&judged["metric"], &judged["total"]),
            (&json!("DICE"), &json!(CASES.len()))
        );
        let classes: Vec<f64> = judged["classes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_f64().unwrap())
            .collect();
        expected = format!(
            "Accuracy: mean = {value:.5}, kidney = {:.4}, tumor = {:.4}\n",
            classes[0], classes[1]
        );
        let output = judged["official"]["output"].as_str().unwrap();
        assert!(output.contains(&expected), "{output}");
        let length = if scenario == "SingleStream" {
            &VALID
        } else {
            &SHORT
        };
        let _ = lab.measure("3d-unet-99", [scenario, "PerformanceOnly"], length);
    }
    let words = [
        "audit",
        "run",
        "--benchmark",
        "3d-unet-99",
        "--scenario",
        "SingleStream",
    ];
    let audits = lab.judged(&words);
    let audits = audits["runs"].as_array().unwrap();
    assert_eq!(audits.len(), 1, "{audits:#?}");
    let audit = &audits[0];
    assert_eq!(
        (&audit["test"], &audit["audit"]["fault"]),
        (&json!("TEST01"), &Value::Null),
        "{audit:#}"
    );
    let responses = &audit["audit"]["responses"];
    assert!(
        responses["compared"].as_u64() > Some(0) && responses["differing"] == 0,
        "{responses}"
    );
    let tree = lab.workspace().join("tree");
    let words = ["submission", "stage", "--rehearsal", "--round", ROUND, "--output"];
    let staged = lab.regatta().args(words).arg(&tree).output().unwrap();
    assert!(staged.status.success(), "{}", printed(&staged));
    let files = tree::files(&tree);
    let texts = files
        .iter()
        .filter(|(path, _)| path.ends_with("/accuracy/accuracy.txt") && !path.contains("/TEST"));
    assert_eq!(texts.clone().count(), 2, "{:?}", files.keys());
    for (path, text) in texts {
        assert!(path.contains("/3d-unet-99/"), "{path}");
        let text = String::from_utf8_lossy(text);
        assert!(text.contains(&expected), "{path}: {text}");
    }
    let verdicts = files.keys().filter(|path| path.ends_with("/verify_accuracy.txt"));
    assert_eq!(verdicts.count(), 1, "{:?}", files.keys());
    let _ = lab.officially_checked(&tree, ROUND);
}
