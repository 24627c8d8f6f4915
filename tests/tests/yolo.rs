//! YOLO from the published form of its dataset to a staged tree: images and annotations, samples, runs on the CPU with the official LoadGen,
//! mean average precision by Regatta and by a script, the audit, and staging. The dataset is made up and small, and so is the network.

use std::fs;

use regatta_test_support::{
    official_loadgen, oracle,
    small_yolo::{Topology, model},
};
use regatta_tests::{
    detections::{annotate, map_line},
    mlperf_benchmark::{replaced, responses},
    whole_way::{WholeWay, WholeWayCase},
};

/// The images of the dataset, and those with an accepted licence.
const IMAGES: usize = 14;
const SAMPLES: usize = 11;
/// The reference's sizes, but few features.
const TOPOLOGY: Topology = Topology {
    side: 640,
    classes: 80,
    width: 8,
};
const CASE: WholeWayCase = WholeWayCase {
    benchmark: "yolo-99",
    model: "yolo-99",
    round: "v6.1",
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
fn yolo_goes_from_images_to_a_staged_tree() {
    let (Some(opencv), Some(coco)) = (oracle::opencv(), oracle::coco()) else {
        return;
    };
    let Some(plugin) = official_loadgen::plugin_file("6.0.17") else {
        return;
    };
    let network = ("models/yolo11l/yolo11l.onnx", model(&TOPOLOGY));
    let Some(mut way) = WholeWay::new(CASE, coco, resized, network) else {
        return;
    };
    let data = way.lab.workspace().join("coco");
    let count = IMAGES.to_string();
    let arguments = [data.as_os_str(), count.as_ref(), "5".as_ref()];
    oracle::run(&opencv, "opencv", "make_coco.py", &arguments);
    way.prepare(&data);
    way.start(Some(&plugin));
    let found = responses(&way.lab.accuracy_log(&way.first_run()));
    assert_eq!(found.len(), SAMPLES);
    // What the network has found becomes the truth, in the form of MLCommons' set: only the selected images are annotated.
    let selected = way
        .lab
        .scratch()
        .join("preprocessed_data/coco/annotations/instances_val2017.json");
    annotate(&selected, &found, i64::from);
    fs::copy(&selected, data.join("annotations/instances_val2017.json")).unwrap();
    way.prepare_again(&data);

    let (accuracy, _) = way.measure_scenario("SingleStream", map_line);
    assert_eq!(responses(&way.lab.accuracy_log(&accuracy)), found);
    let (_, line) = way.measure_scenario("Offline", map_line);
    way.audit(&["TEST01"]);
    way.stage(&line);
}
