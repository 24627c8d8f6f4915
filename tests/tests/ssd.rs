//! Tests SSD of the old rounds from the published form of its dataset to a staged tree. It makes samples, runs on the CPU,
//! computes the mean average precision by Regatta and by a script, audits and stages. The dataset is made up and small, and so
//! are the networks.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::path::Path;

use regatta_test_support::{
    official_loadgen, oracle,
    small_ssd::{MOBILENET, RESNET34, Topology, model},
};
use regatta_tests::{
    detection_way::DetectionWay,
    detections::annotate,
    mlperf_benchmark::replaced,
    whole_way::{WholeWay, WholeWayCase},
};
use serde_json::Value;

const IMAGES: usize = 12;
/// The last round with SSD.
const ROUND: &str = "v2.0";

const fn case(benchmark: &'static str, model: &'static str) -> WholeWayCase {
    WholeWayCase {
        benchmark,
        model,
        round: ROUND,
        scenarios: &["SingleStream", "Offline"],
        samples: IMAGES,
        // The round's 24,576 samples would take an hour here.
        queries: ["min_query_count=4", "min_query_count=100"],
        setting: "batch_size=2",
        metric: "mAP",
        script: ["coco", "map.py"],
    }
}

/// Resizes a benchmark to this dataset.
fn resized(text: String, performance: &str) -> String {
    replaced(
        text,
        &[
            ("total_samples = 5000", &format!("total_samples = {IMAGES}")),
            (performance, "performance_samples = 4"),
        ],
    )
}

/// Returns the identifiers of the categories in annotations, ascending.
fn categories(file: &Path) -> Vec<i64> {
    let text = std::fs::read_to_string(file).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let listed = document["categories"].as_array().unwrap().iter();
    let mut categories: Vec<i64> = listed.map(|one| one["id"].as_i64().unwrap()).collect();
    categories.sort_unstable();
    categories
}

/// Takes a benchmark the whole way. `category` returns the category of a class.
fn whole_way(
    case: WholeWayCase,
    performance: &str,
    (file, topology): (&str, &Topology),
    category: impl Fn(&[i64], u16) -> i64,
) {
    let (Some(opencv), Some(coco)) = (oracle::opencv(), oracle::coco()) else {
        return;
    };
    let network = (file, model(topology));
    let resized = |text| resized(text, performance);
    let Some(way) = WholeWay::new(case, coco, resized, network) else {
        return;
    };
    let plugin = official_loadgen::plugin_of_tag(ROUND);
    let first = DetectionWay::begin(way, &opencv, "make_coco.py", IMAGES, plugin.as_deref());
    assert_eq!(first.found.len(), IMAGES);
    let annotations = first.data.join("annotations/instances_val2017.json");
    let known = categories(&annotations);
    annotate(&annotations, &first.found, |class| category(&known, class));
    first.finish(&["TEST01", "TEST05"]);
}

#[test]
fn ssd_mobilenet_from_images_to_a_staged_tree() {
    whole_way(
        case("ssd-mobilenet", "ssd-small"),
        "performance_samples = 256",
        ("models/SSDMobileNet/ssd_mobilenet_v1_heads.onnx", &MOBILENET),
        |_, class| i64::from(class),
    );
}

#[test]
fn ssd_resnet34_from_images_to_a_staged_tree() {
    whole_way(
        case("ssd-resnet34", "ssd-large"),
        "performance_samples = 64",
        ("models/SSDResNet34/resnet34-ssd1200_heads.onnx", &RESNET34),
        |categories, class| categories[usize::from(class) - 1],
    );
}
