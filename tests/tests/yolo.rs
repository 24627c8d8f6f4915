//! Tests YOLO from the published form of its dataset to a staged tree. It makes samples, runs on the CPU with the official
//! LoadGen, computes the mean average precision by Regatta and by a script, audits and stages. The dataset is made up and small,
//! and so is the network.

use std::fs;

use regatta_test_support::{
    official_loadgen, oracle,
    small_yolo::{Topology, model},
};
use regatta_tests::{
    detection_way::DetectionWay,
    detections::annotate,
    mlperf_benchmark::replaced,
    whole_way::{WholeWay, WholeWayCase},
};

/// The images of the dataset, and those with an accepted licence.
const IMAGES: usize = 14;
const SAMPLES: usize = 11;
const CASE: WholeWayCase = WholeWayCase {
    benchmark: "yolo-99",
    model: "yolo-99",
    round: "v6.1",
    scenarios: &["SingleStream", "Offline"],
    samples: SAMPLES,
    // 1,525 samples would take a minute here.
    queries: ["min_query_count=4", "min_query_count=100"],
    setting: "batch_size=2",
    metric: "mAP",
    script: ["coco", "map.py"],
};

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
fn yolo_from_images_to_a_staged_tree() {
    let (Some(opencv), Some(coco)) = (oracle::opencv(), oracle::coco()) else {
        return;
    };
    let Some(plugin) = official_loadgen::plugin_file("6.0.17") else {
        return;
    };
    let network = ("models/yolo11l/yolo11l.onnx", model(&Topology::SMALL));
    let Some(way) = WholeWay::new(CASE, coco, resized, network) else {
        return;
    };
    let first = DetectionWay::begin(way, &opencv, "make_coco.py", IMAGES, Some(&plugin));
    assert_eq!(first.found.len(), SAMPLES);
    // The network's results become the truth, in the form of MLCommons' set: only the selected images are annotated.
    let selected = first
        .way
        .lab
        .scratch()
        .join("preprocessed_data/coco/annotations/instances_val2017.json");
    annotate(&selected, &first.found, i64::from);
    fs::copy(&selected, first.data.join("annotations/instances_val2017.json")).unwrap();
    first.finish(&["TEST01"]);
}
