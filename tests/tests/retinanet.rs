//! RetinaNet from the published form of its dataset to a staged tree: images and annotations, samples, runs on the CPU with the official
//! LoadGen, mean average precision by Regatta and by a script, and staging. The dataset is made up and small, and so is the network.

use regatta_test_support::{
    official_loadgen, oracle,
    small_retinanet::{Topology, model},
};
use regatta_tests::{
    detections::{annotate, map_line},
    mlperf_benchmark::{replaced, responses},
    whole_way::{WholeWay, WholeWayCase},
};

const IMAGES: usize = 10;
/// The classes of the dataset. The reference has 264 and 256 features; fewer keep the test short.
const TOPOLOGY: Topology = Topology {
    side: 800,
    classes: 12,
    width: 8,
};
const CASE: WholeWayCase = WholeWayCase {
    benchmark: "retinanet",
    model: "retinanet",
    // The last round in which edge systems have the benchmark. The official LoadGen 5.1.2 has its rules. 4.1.30, with those of v4.1, ignores
    // the settings of audits, which the LoadGen of that round's own tag reads.
    round: "v5.1",
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
    let file = "models/retinanet-resnext50-32x4d/retinanet_heads.onnx";
    let Some(mut way) = WholeWay::new(CASE, coco, resized, (file, model(&TOPOLOGY))) else {
        return;
    };
    let data = way.lab.workspace().join("open-images-v6-mlperf");
    let count = IMAGES.to_string();
    let arguments = [data.as_os_str(), count.as_ref(), "5".as_ref()];
    oracle::run(&opencv, "opencv", "make_openimages.py", &arguments);
    way.prepare(&data);
    way.start(Some(&plugin));
    let found = responses(&way.lab.accuracy_log(&way.first_run()));
    assert_eq!(found.len(), IMAGES);
    annotate(
        &data.join("annotations/openimages-mlperf.json"),
        &found,
        i64::from,
    );
    way.prepare_again(&data);

    let (accuracy, _) = way.measure_scenario("SingleStream", map_line);
    assert_eq!(responses(&way.lab.accuracy_log(&accuracy)), found);
    let (_, line) = way.measure_scenario("Offline", map_line);
    way.audit(&["TEST01"]);
    way.stage(&line);
}
