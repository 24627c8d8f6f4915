//! Tests ResNet50 from the published form of its dataset to a staged tree. It makes samples of JPEG images, runs on the CPU with
//! the official LoadGen, computes the accuracy by Regatta and by a script, audits and stages. The dataset is made up and small,
//! and so is the network.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::{fs, path::Path, process::Command};

use regatta_test_support::{official_loadgen, oracle, small_resnet50, tree};
use regatta_tests::{
    Broker, Lab,
    mlperf_benchmark::{replaced, responses},
    succeed_output,
};
use serde_json::Value;

const OFFICIAL: [&str; 2] = ["--loadgen", "official"];
const IMAGES: usize = 200;
/// How many of the labels are the network's own answers: 80 %, above the target.
const RIGHT: usize = 160;

/// Resizes the benchmark to this dataset.
fn resized(text: String) -> String {
    replaced(
        text,
        &[
            ("total_samples = 50000", &format!("total_samples = {IMAGES}")),
            ("performance_samples = 1024", "performance_samples = 64"),
            ("source_bytes = 6706560319\n", ""),
        ],
    )
}

/// Returns the class of each sample in a log.
fn classes(log: &Path) -> Vec<i32> {
    let of = |data: &String| u32::from_str_radix(data, 16).unwrap().swap_bytes().cast_signed();
    let classes: Vec<_> = responses(log).values().map(of).collect();
    assert_eq!(classes.len(), IMAGES);
    classes
}

#[test]
fn resnet50_from_jpegs_to_a_staged_tree() {
    let Some(python) = oracle::opencv() else { return };
    let Some(plugin) = official_loadgen::plugin_file("6.0.17") else {
        return;
    };
    let Some(mut lab) = Lab::new(Broker::Embedded) else {
        return;
    };
    let images = lab.workspace().join("ILSVRC2012_img_val");
    let _ = succeed_output(
        Command::new(&python)
            .arg(oracle::directory("opencv").join("make_images.py"))
            .arg(&images)
            .args([&IMAGES.to_string(), "7"]),
    );
    lab.write_benchmark("resnet50", resized);
    let model = lab.scratch().join("models/ResNet50/resnet50_v1.onnx");
    fs::create_dir_all(model.parent().unwrap()).unwrap();
    fs::write(model, small_resnet50::model()).unwrap();

    let states = || lab.benchmark_files("resnet50");
    assert_eq!(states(), ["present", "missing", "missing"]);
    let images_word = images.to_str().unwrap();
    let prep = ["prep", "resnet50", "--data", images_word];
    let made = lab.json(&prep);
    assert_eq!(
        (&made["samples"], &made["unchanged"]),
        (&Value::from(IMAGES), &Value::from(0))
    );
    let again = lab.json(&prep);
    assert_eq!(again["unchanged"], IMAGES);
    assert_eq!(states(), ["present"; 3]);

    let plugins = plugin.parent().unwrap().display();
    lab.device_prefix = vec!["env".to_owned(), format!("REGATTA_PLUGINS={plugins}")];
    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let first = lab.measure("resnet50", ["SingleStream", "AccuracyOnly"], &OFFICIAL);
    let found = classes(&lab.accuracy_log(&first));
    assert!(found.iter().all(|class| (-1..1000).contains(class)), "{found:?}");
    let mut distinct = found.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(
        distinct.len() > 10,
        "the network tells images apart: {distinct:?}"
    );

    // The labels of the first 160 images are the network's answers, the others are not.
    let names = fs::read_to_string(images.join("val_map.txt")).unwrap();
    let labelled = names
        .lines()
        .zip(&found)
        .enumerate()
        .map(|(index, (line, &class))| {
            let name = line.split(' ').next().unwrap();
            let right = class.max(0);
            let label = if index < RIGHT && class >= 0 {
                right
            } else {
                (right + 1) % 1000
            };
            format!("{name} {label}\n")
        });
    fs::write(images.join("val_map.txt"), labelled.collect::<String>()).unwrap();
    let relabelled = lab.json(&prep);
    assert_eq!(relabelled["unchanged"], IMAGES, "the samples are the same");

    let accuracy = lab.measure("resnet50", ["SingleStream", "AccuracyOnly"], &OFFICIAL);
    let log = lab.accuracy_log(&accuracy);
    let good = found[..RIGHT].iter().filter(|&&class| class >= 0).count();
    let script = oracle::directory("opencv").join("top1.py");
    let judged = lab.json(&[
        "accuracy",
        "resnet50",
        "--log",
        log.to_str().unwrap(),
        "--official",
        script.to_str().unwrap(),
        "--python",
        python.to_str().unwrap(),
    ]);
    let judged = &judged["accuracy"][0];
    assert_eq!(judged["official"]["agrees"], true, "{judged:#}");
    assert_eq!(judged["correct"], good, "{judged:#}");
    let expected = format!(
        "accuracy={:.3}%, good={good}, total={IMAGES}\n",
        100.0 * good as f64 / IMAGES as f64
    );
    assert_eq!(judged["official"]["output"], expected);

    let _ = lab.measure("resnet50", ["SingleStream", "PerformanceOnly"], &OFFICIAL);
    let audit = [
        "audit",
        "run",
        "--benchmark",
        "resnet50",
        "--scenario",
        "SingleStream",
    ];
    let audits = lab.judged(&audit);
    let names: Vec<_> = audits["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["test"])
        .collect();
    assert_eq!(names, ["TEST01", "TEST04"], "{audits:#}");
    let tree = lab.workspace().join("tree");
    let words = ["submission", "stage", "--rehearsal", "--output"];
    let _ = succeed_output(lab.regatta().args(words).arg(&tree));
    let mut kept = tree::files(&tree);
    kept.retain(|path, _| path.ends_with("/accuracy/accuracy.txt") && !path.contains("/TEST"));
    assert_eq!(kept.len(), 1, "{:?}", kept.keys());
    for (path, text) in kept {
        assert!(text.starts_with(expected.as_bytes()), "{path}");
    }
    let _ = lab.officially_checked(&tree, "v6.1");
}
