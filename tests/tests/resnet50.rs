//! ResNet50 from the published form of its dataset to a staged tree: JPEG images and labels, samples, runs on the CPU, accuracy by
//! Regatta and by a script, and staging. The dataset is made up and small, and so is the network.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "test code")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use regatta_test_support::{oracle, small_resnet50, tree};
use regatta_tests::{Broker, Lab, printed, succeed_output};
use serde_json::Value;

const IMAGES: usize = 200;
/// How many of the labels are the network's own answers: 80 %, above the target.
const RIGHT: usize = 160;

/// Changes the shipped benchmark file to the size of this dataset, and nothing else.
fn write_benchmark(lab: &Lab) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/benchmarks/resnet50.toml");
    let mut text = fs::read_to_string(shipped).unwrap();
    for (from, to) in [
        ("total_samples = 50000", format!("total_samples = {IMAGES}")),
        (
            "performance_samples = 1024",
            "performance_samples = 64".to_owned(),
        ),
        ("source_bytes = 6706560319\n", String::new()),
    ] {
        assert!(text.contains(from), "resnet50.toml lacks {from}");
        text = text.replace(from, &to);
    }
    let directory = lab.workspace().join("configs/benchmarks");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("resnet50.toml"), text).unwrap();
}

fn run(lab: &Lab, mode: &str) -> Value {
    let output = lab
        .regatta()
        .args([
            "run",
            "--benchmark",
            "resnet50",
            "--engine",
            "tract",
            "--scenario",
            "SingleStream",
        ])
        .args(["--mode", mode, "--duration", "300ms", "--format", "json"])
        .output()
        .unwrap();
    let text = printed(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{text}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["runs"][0].clone()
}

fn accuracy_log(lab: &Lab, run: &Value) -> PathBuf {
    let id = run["run"].as_str().expect("an id");
    lab.workspace()
        .join("runs")
        .join(id)
        .join("files/mlperf_log_accuracy.json")
}

/// Returns the class of each sample in a log.
fn classes(log: &Path) -> Vec<i32> {
    let entries: Vec<Value> = serde_json::from_str(&fs::read_to_string(log).unwrap()).unwrap();
    let mut classes = vec![-2; IMAGES];
    for entry in &entries {
        let index = usize::try_from(entry["qsl_idx"].as_u64().unwrap()).unwrap();
        let data = entry["data"].as_str().unwrap();
        let number = u32::from_str_radix(data, 16).unwrap().swap_bytes();
        classes[index] = number.cast_signed();
    }
    classes
}

#[test]
fn resnet50_goes_from_jpegs_to_a_staged_tree() {
    let Some(python) = oracle::opencv() else { return };
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
    write_benchmark(&lab);
    let model = lab.scratch().join("models/ResNet50/resnet50_v1.onnx");
    fs::create_dir_all(model.parent().unwrap()).unwrap();
    fs::write(model, small_resnet50::model()).unwrap();

    let missing = lab.json(&["benchmark", "show", "resnet50"]);
    let states = |document: &Value| -> Vec<String> {
        let files = document["files"].as_array().unwrap().iter();
        files
            .map(|file| file["state"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(states(&missing), ["present", "missing", "missing"]);
    let images_word = images.to_str().unwrap();
    let prep = ["prep", "resnet50", "--data", images_word];
    let made = lab.json(&prep);
    assert_eq!(
        (&made["samples"], &made["unchanged"]),
        (&Value::from(IMAGES), &Value::from(0))
    );
    let again = lab.json(&prep);
    assert_eq!(again["unchanged"], IMAGES);
    assert_eq!(
        states(&lab.json(&["benchmark", "show", "resnet50"])),
        ["present"; 3]
    );

    lab.start_coordinator();
    lab.start_device();
    lab.wait_for_device();
    let first = run(&lab, "AccuracyOnly");
    let found = classes(&accuracy_log(&lab, &first));
    assert!(found.iter().all(|class| (-1..1000).contains(class)), "{found:?}");
    let mut distinct = found.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(
        distinct.len() > 10,
        "the network tells images apart: {distinct:?}"
    );

    // The labels of the first 160 images are what the network says, the others are not.
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

    let accuracy = run(&lab, "AccuracyOnly");
    let log = accuracy_log(&lab, &accuracy);
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

    let performance = run(&lab, "PerformanceOnly");
    assert_eq!(performance["phase"], "done", "{performance:#}");
    let staged = lab
        .regatta()
        .args(["submission", "stage", "--rehearsal", "--output"])
        .arg(lab.workspace().join("tree"))
        .output()
        .unwrap();
    assert!(staged.status.success(), "{}", printed(&staged));
    let mut kept = tree::files(&lab.workspace().join("tree"));
    kept.retain(|path, _| path.ends_with("/accuracy.txt"));
    assert_eq!(kept.len(), 1, "{:?}", kept.keys());
    for (path, text) in kept {
        assert!(text.starts_with(expected.as_bytes()), "{path}");
    }
}
