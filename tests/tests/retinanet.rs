//! RetinaNet from the published form of its dataset to a staged tree: images and annotations, samples, runs on the CPU with the official
//! LoadGen, mean average precision by Regatta and by a script, and staging. The dataset is made up and small, and so is the network.

use std::fs;

use regatta_test_support::{
    official_loadgen, oracle,
    small_retinanet::{Topology, model},
    tree,
};
use regatta_tests::{
    Broker, Lab,
    detections::annotate,
    mlperf_benchmark::{replaced, responses},
    printed,
};
use serde_json::{Value, json};

const IMAGES: usize = 10;
/// The classes of the dataset. The reference has 264 and 256 features; fewer keep the test short.
const TOPOLOGY: Topology = Topology {
    side: 800,
    classes: 12,
    width: 8,
};
/// The last round in which edge systems have the benchmark. The official LoadGen 5.1.2 has its rules. 4.1.30, with those of v4.1, ignores the
/// settings of audits, which the LoadGen of that round's own tag reads.
const ROUND: &str = "v5.1";

/// The official LoadGen, short: the round's 24,576 samples, in batches of 16, would take an hour here.
const SHORT: [&str; 8] = with_queries("min_query_count=4");
/// Enough queries for a valid run, which an audit repeats.
const VALID: [&str; 8] = with_queries("min_query_count=70");

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
            ("total_samples = 24781", &format!("total_samples = {IMAGES}")),
            ("performance_samples = 64", "performance_samples = 4"),
            ("classes = 264", &format!("classes = {}", TOPOLOGY.classes)),
        ],
    )
}

#[test]
fn retinanet_goes_from_images_to_a_staged_tree() {
    let (Some(opencv), Some(coco)) = (oracle::opencv(), oracle::coco()) else {
        return;
    };
    let Some(plugin) = official_loadgen::plugin_file("5.1.2") else {
        return;
    };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let data = lab.workspace().join("open-images-v6-mlperf");
    let count = IMAGES.to_string();
    let arguments = [data.as_os_str(), count.as_ref(), "5".as_ref()];
    oracle::run(&opencv, "opencv", "make_openimages.py", &arguments);
    lab.write_benchmark("retinanet", resized);
    let file = lab
        .scratch()
        .join("models/retinanet-resnext50-32x4d/retinanet_heads.onnx");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, model(&TOPOLOGY)).unwrap();

    let states = || lab.benchmark_files("retinanet");
    assert_eq!(states(), ["present", "missing", "missing", "missing"]);
    let prep = ["prep", "retinanet", "--data", data.to_str().unwrap()];
    assert_eq!(lab.json(&prep)["samples"], IMAGES);
    assert_eq!(lab.json(&prep)["unchanged"], IMAGES);
    assert_eq!(states(), ["present"; 4]);

    // Beside newer plug-ins, the newest would be taken.
    let plugins = lab.workspace().join("plugins");
    fs::create_dir(&plugins).unwrap();
    for extension in ["so", "json"] {
        let file = plugin.with_extension(extension);
        fs::copy(&file, plugins.join(file.file_name().unwrap())).unwrap();
    }
    let plugins = plugins.display();
    lab.device_prefix = vec!["env".to_owned(), format!("REGATTA_PLUGINS={plugins}")];
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let first = lab.measure("retinanet", ["SingleStream", "AccuracyOnly"], &SHORT);
    let found = responses(&lab.accuracy_log(&first));
    assert_eq!(found.len(), IMAGES);
    let script = oracle::directory("coco").join("map.py");
    let judge = |run: &Value| {
        let log = lab.accuracy_log(run);
        let words = ["accuracy", "retinanet", "--log", log.to_str().unwrap()];
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
    annotate(&data.join("annotations/openimages-mlperf.json"), &found);
    assert_eq!(lab.json(&prep)["unchanged"], IMAGES, "the samples are the same");

    let mut expected = String::new();
    for scenario in ["SingleStream", "Offline"] {
        let accuracy = lab.measure("retinanet", [scenario, "AccuracyOnly"], &SHORT);
        let log = lab.accuracy_log(&accuracy);
        if scenario == "SingleStream" {
            assert_eq!(responses(&log), found);
        }
        let judged = judge(&accuracy);
        let value = judged["value"].as_f64().unwrap();
        assert!((80.0..100.0).contains(&value), "{judged:#}");
        assert_eq!(
            (&judged["metric"], &judged["total"]),
            (&json!("mAP"), &json!(IMAGES))
        );
        expected = format!("mAP={value:.3}%\n");
        let output = judged["official"]["output"].as_str().unwrap();
        assert!(output.ends_with(&expected), "{output}");
        let length = if scenario == "SingleStream" {
            &VALID
        } else {
            &SHORT
        };
        let _ = lab.measure("retinanet", [scenario, "PerformanceOnly"], length);
    }
    let words = [
        "audit",
        "run",
        "--benchmark",
        "retinanet",
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
    let mut kept = tree::files(&tree);
    let verdicts = kept.keys().filter(|path| path.ends_with("/verify_accuracy.txt"));
    assert_eq!(verdicts.count(), 1, "{:?}", kept.keys());
    kept.retain(|path, _| path.ends_with("/accuracy/accuracy.txt") && !path.contains("/TEST"));
    assert_eq!(kept.len(), 2, "{:?}", kept.keys());
    for (path, text) in kept {
        assert!(path.contains("/retinanet/"), "{path}");
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(&expected), "{path}: {text}");
    }
    let _ = lab.officially_checked(&tree, ROUND);
}
