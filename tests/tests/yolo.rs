//! YOLO from the published form of its dataset to a staged tree: images and annotations, samples, runs on the CPU with the official LoadGen,
//! mean average precision by Regatta and by a script, the audit, and staging. The dataset is made up and small, and so is the network.

use std::fs;

use regatta_test_support::{
    official_loadgen, oracle,
    small_yolo::{Topology, model},
    tree,
};
use regatta_tests::{
    Broker, Lab,
    detections::annotate,
    mlperf_benchmark::{replaced, responses},
    printed,
};
use serde_json::{Value, json};

/// The images of the dataset, and those with an accepted licence.
const IMAGES: usize = 14;
const SAMPLES: usize = 11;
/// The reference's sizes, but few features.
const TOPOLOGY: Topology = Topology {
    side: 640,
    classes: 80,
    width: 8,
};
const ROUND: &str = "v6.1";

/// The official LoadGen, short: 1,525 samples would take a minute here.
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
        "batch_size=2",
    ]
}

/// Resizes the benchmark to this dataset.
fn resized(text: String) -> String {
    replaced(
        text,
        &[
            ("total_samples = 1525", &format!("total_samples = {SAMPLES}")),
            ("performance_samples = 64", "performance_samples = 4"),
        ],
    )
}

#[test]
fn yolo_goes_from_images_to_a_staged_tree() {
    let (Some(opencv), Some(coco)) = (oracle::opencv(), oracle::coco()) else {
        return;
    };
    let Some(plugin) = official_loadgen::plugin_file("6.0.17") else {
        return;
    };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let data = lab.workspace().join("coco");
    let count = IMAGES.to_string();
    let arguments = [data.as_os_str(), count.as_ref(), "5".as_ref()];
    oracle::run(&opencv, "opencv", "make_coco.py", &arguments);
    lab.write_benchmark("yolo-99", resized);
    let file = lab.scratch().join("models/yolo11l/yolo11l.onnx");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, model(&TOPOLOGY)).unwrap();

    let states = || lab.benchmark_files("yolo-99");
    assert_eq!(states(), ["present", "missing", "missing", "missing"]);
    let prep = ["prep", "yolo-99", "--data", data.to_str().unwrap()];
    assert_eq!(lab.json(&prep)["samples"], SAMPLES);
    assert_eq!(lab.json(&prep)["unchanged"], SAMPLES);
    assert_eq!(states(), ["present"; 4]);

    let plugins = plugin.parent().unwrap().display();
    lab.device_prefix = vec!["env".to_owned(), format!("REGATTA_PLUGINS={plugins}")];
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let first = lab.measure("yolo-99", ["SingleStream", "AccuracyOnly"], &SHORT);
    let found = responses(&lab.accuracy_log(&first));
    assert_eq!(found.len(), SAMPLES);
    let script = oracle::directory("coco").join("map.py");
    let judge = |run: &Value| {
        let log = lab.accuracy_log(run);
        let words = ["accuracy", "yolo-99", "--log", log.to_str().unwrap()];
        let official = [
            "--official",
            script.to_str().unwrap(),
            "--python",
            coco.to_str().unwrap(),
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
    // What the network has found becomes the truth, in the form of MLCommons' set: only the selected images are annotated.
    let selected = lab
        .scratch()
        .join("preprocessed_data/coco/annotations/instances_val2017.json");
    annotate(&selected, &found);
    fs::copy(&selected, data.join("annotations/instances_val2017.json")).unwrap();
    assert_eq!(lab.json(&prep)["unchanged"], SAMPLES, "the samples are the same");

    let mut expected = String::new();
    for scenario in ["SingleStream", "Offline"] {
        let accuracy = lab.measure("yolo-99", [scenario, "AccuracyOnly"], &SHORT);
        let log = lab.accuracy_log(&accuracy);
        if scenario == "SingleStream" {
            assert_eq!(responses(&log), found);
        }
        let judged = judge(&accuracy);
        let value = judged["value"].as_f64().unwrap();
        assert!((53.0..100.0).contains(&value), "{judged:#}");
        assert_eq!(
            (&judged["metric"], &judged["total"]),
            (&json!("mAP"), &json!(SAMPLES))
        );
        expected = format!("mAP={value:.3}%\n");
        let output = judged["official"]["output"].as_str().unwrap();
        assert!(output.ends_with(&expected), "{output}");
        let length = if scenario == "SingleStream" {
            &VALID
        } else {
            &SHORT
        };
        let _ = lab.measure("yolo-99", [scenario, "PerformanceOnly"], length);
    }
    let words = [
        "audit",
        "run",
        "--benchmark",
        "yolo-99",
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
        assert!(path.contains("/yolo-99/"), "{path}");
        let text = String::from_utf8_lossy(text);
        assert!(text.contains(&expected), "{path}: {text}");
    }
    let verdicts = files.keys().filter(|path| path.ends_with("/verify_accuracy.txt"));
    assert_eq!(verdicts.count(), 1, "{:?}", files.keys());
    let _ = lab.officially_checked(&tree, ROUND);
}
