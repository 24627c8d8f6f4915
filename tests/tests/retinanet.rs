//! Tests RetinaNet from the published form of its dataset to a staged tree. It makes samples, runs on the CPU with the official
//! LoadGen, computes the mean average precision by Regatta and by a script, and stages. The dataset is made up and small, and so
//! is the network.

use regatta_test_support::{
    official_loadgen, oracle,
    small_retinanet::{Topology, model},
};
use regatta_tests::{
    detection_way::DetectionWay,
    detections::annotate,
    mlperf_benchmark::replaced,
    whole_way::{WholeWay, WholeWayCase},
};

const IMAGES: usize = 10;
const CASE: WholeWayCase = WholeWayCase {
    benchmark: "retinanet",
    model: "retinanet",
    // The last round in which edge systems have the benchmark. The official LoadGen 5.1.2 has its rules. 4.1.30, with those of v4.1, ignores
    // the settings of audits, which the LoadGen of that round's own tag reads.
    round: "v5.1",
    scenarios: &["SingleStream", "Offline"],
    samples: IMAGES,
    // The round's 24,576 samples, in batches of 16, would take an hour here.
    queries: ["min_query_count=4", "min_query_count=70"],
    setting: "batch_size=2",
    metric: "mAP",
    script: ["coco", "map.py"],
};

/// Resizes the benchmark to this dataset.
fn resized(text: String) -> String {
    replaced(
        text,
        &[
            ("total_samples = 24781", &format!("total_samples = {IMAGES}")),
            ("performance_samples = 64", "performance_samples = 4"),
            ("classes = 264", &format!("classes = {}", Topology::SMALL.classes)),
        ],
    )
}

#[test]
fn retinanet_from_images_to_a_staged_tree() {
    let (Some(opencv), Some(coco)) = (oracle::opencv(), oracle::coco()) else {
        return;
    };
    let Some(plugin) = official_loadgen::plugin_file("5.1.2") else {
        return;
    };
    let file = "models/retinanet-resnext50-32x4d/retinanet_heads.onnx";
    let Some(way) = WholeWay::new(CASE, coco, resized, (file, model(&Topology::SMALL))) else {
        return;
    };
    let first = DetectionWay::begin(way, &opencv, "make_openimages.py", IMAGES, Some(&plugin));
    assert_eq!(first.found.len(), IMAGES);
    let annotations = first.data.join("annotations/openimages-mlperf.json");
    annotate(&annotations, &first.found, i64::from);
    first.finish(&["TEST01"]);
}
