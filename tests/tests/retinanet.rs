//! Tests RetinaNet from the published form of its dataset to a staged tree. It makes samples, runs on the CPU with the official
//! LoadGen, computes the mean average precision by Regatta and by a script, and stages. int8 samples of images lead to the detections of
//! floats. The datasets are made up and small, and so is the network.

#![expect(clippy::expect_used, reason = "test code")]

use std::{collections::BTreeMap, fs};

use regatta_test_support::{
    fake_tensorrt::FakeTensorrt,
    official_loadgen, oracle,
    small_retinanet::{Topology, model},
};
use regatta_tests::{
    Broker, Lab, agent,
    detection_way::DetectionWay,
    detections::{annotate, floats},
    jpeg,
    mlperf_benchmark::{replaced, responses},
    succeed_output,
    whole_way::{WholeWay, WholeWayCase},
};
use serde_json::{Value, json};

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

const NETWORK: &str = "models/retinanet-resnext50-32x4d/retinanet_heads.onnx";

/// Resizes the benchmark to a dataset.
fn resized(text: String, samples: usize, performance_samples: usize) -> String {
    replaced(
        text,
        &[
            ("total_samples = 24781", &format!("total_samples = {samples}")),
            (
                "performance_samples = 64",
                &format!("performance_samples = {performance_samples}"),
            ),
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
    let network = (NETWORK, model(&Topology::SMALL));
    let Some(way) = WholeWay::new(CASE, coco, |text| resized(text, IMAGES, 4), network) else {
        return;
    };
    let first = DetectionWay::begin(way, &opencv, "make_openimages.py", IMAGES, Some(&plugin));
    assert_eq!(first.found.len(), IMAGES);
    let annotations = first.data.join("annotations/openimages-mlperf.json");
    annotate(&annotations, &first.found, i64::from);
    first.finish(&["TEST01"]);
}

/// Images of coloured blocks.
const COLOURED: usize = 3;
/// The columns of blocks in an image.
const COLUMNS: usize = 12;

/// Returns an image whose values differ by up to `range` from grey.
fn image(number: usize, range: u8) -> Vec<u8> {
    let value = |place: usize| {
        let noise = (place + 1000 * number).wrapping_mul(2_654_435_761) >> 13;
        128 - range + (noise % (2 * usize::from(range))) as u8
    };
    let blocks: Vec<jpeg::Colour> = (0..8 * COLUMNS)
        .map(|block| [0, 1, 2].map(|channel| value(3 * block + channel)))
        .collect();
    jpeg::encode(COLUMNS, &blocks)
}

/// Images with a calibration list whose images are nearly grey, so that the calibration finds a scale that would be wrong for the samples.
struct ColouredImages {
    lab: Lab,
    fakes: FakeTensorrt,
}

impl ColouredImages {
    fn prepare() -> Self {
        let lab = Lab::new(Broker::Embedded).expect("the embedded broker needs nothing");
        lab.write_benchmark("retinanet", |text| resized(text, COLOURED, COLOURED));
        let network = lab.scratch().join(NETWORK);
        fs::create_dir_all(network.parent().expect("a directory")).expect("the model's directory");
        fs::write(network, model(&Topology::SMALL)).expect("the network");
        let data = lab.workspace().join("dataset");
        let write = |path: &str, content: &[u8]| {
            let path = data.join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("the dataset's directory");
            fs::write(path, content).expect("a file of the dataset");
        };
        let name = |number: usize| format!("{number}.jpg");
        for number in 0..COLOURED {
            write(&format!("validation/data/{}", name(number)), &image(number, 120));
        }
        let images: Vec<Value> = (0..COLOURED)
            .map(|number| json!({ "id": number, "file_name": name(number), "height": 64, "width": 96 }))
            .collect();
        let annotations = json!({ "images": images, "categories": [], "annotations": [] });
        write(
            "annotations/openimages-mlperf.json",
            annotations.to_string().as_bytes(),
        );
        write("calibration/data/grey.jpg", &image(9, 20));
        write("openimages_cal_images_list.txt", b"grey.jpg\n");
        let (data, list) = (
            data.display().to_string(),
            data.join("openimages_cal_images_list.txt").display().to_string(),
        );
        for form in [&[][..], &["--dtype", "int8"], &["--calibration", &list]] {
            let _ = lab.json(&[&["prep", "retinanet", "--data", &data], form].concat());
        }
        Self {
            lab,
            fakes: FakeTensorrt::new(),
        }
    }

    fn agent(&self, words: &[&str]) -> std::process::Command {
        let program = agent().display().to_string();
        let mut command = self.fakes.agent(&program, &self.lab.scratch(), words);
        command.env("FAKE_TRT_COMPUTES", "1");
        command
    }

    fn bench(&self, engine: &str, settings: &[&str]) -> std::process::Command {
        let file = self.lab.workspace().join("configs/benchmarks/retinanet.toml");
        let file = file.display().to_string();
        let mut words: Vec<&str> =
            "bench --benchmark retinanet --scenario Offline --mode AccuracyOnly --scratch . --log-dir logs \
                                    --format json --benchmark-file"
                .split_ascii_whitespace()
                .collect();
        words.extend([file.as_str(), "--engine", engine]);
        words.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        self.agent(&words)
    }

    /// Returns the detections of a run that has its engine.
    fn detections(&self, engine: &str, settings: &[&str]) -> BTreeMap<u64, Vec<f64>> {
        let _ = succeed_output(&mut self.bench(engine, settings));
        let found = responses(&self.lab.scratch().join("logs/mlperf_log_accuracy.json"));
        let found = found.into_iter();
        found
            .map(|(sample, response)| (sample, floats(&response)))
            .collect()
    }

    /// Runs without an engine. Returns the command that builds it, and the printed reason.
    fn missing_engine(&self, settings: &[&str]) -> (Vec<String>, String) {
        let ended = self.bench("tensorrt", settings).output().expect("the agent runs");
        let document: Value = serde_json::from_slice(&ended.stdout).expect("a command in JSON");
        let words = serde_json::from_value(document["missing_engine"].clone()).expect("the command's words");
        (words, String::from_utf8_lossy(&ended.stderr).into_owned())
    }

    fn build(&self, words: &[String]) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let _ = succeed_output(&mut self.agent(&words));
    }
}

/// The largest difference of scores and of coordinates as fractions.
const BOUND: f64 = 0.02;
/// NVIDIA's settings for Orin, and the prepared calibration list.
const INT8: [&str; 4] = [
    "precision=int8",
    "input_dtype=int8",
    "input_format=linear",
    "gpu_batch_size=1",
];

#[test]
fn int8_samples_of_jpegs_lead_to_the_detections_of_floats() {
    let images = ColouredImages::prepare();
    let (words, _) = images.missing_engine(&INT8);
    // An engine that reads samples with the scale that the calibration found.
    let scale = words
        .iter()
        .position(|word| word == "--input-scale")
        .expect("the scale");
    assert_eq!(words[scale + 1], "images=0.020792441");
    images.build(&[&words[..scale], &words[scale + 2..]].concat());
    let (again, reason) = images.missing_engine(&INT8);
    let is_named = reason.contains("1 engine of this model is for int8 samples of another scale");
    assert!(is_named && again == words, "{reason}");
    images.build(&words);

    let (bytes, floats) = (
        images.detections("tensorrt", &INT8),
        images.detections("tract", &[]),
    );
    assert_eq!((bytes.len(), floats.len()), (COLOURED, COLOURED));
    for (bytes, floats) in bytes.values().zip(floats.values()) {
        let (bytes, floats) = (bytes.as_chunks::<7>().0, floats.as_chunks::<7>().0);
        assert!(floats.len() > 10, "{} detections", floats.len());
        // A small difference of scores can change which of two boxes suppresses the other.
        let is_near = |one: &[f64; 7], other: &[f64; 7]| {
            let mut sides = one[..6].iter().zip(&other[..6]);
            one[6] == other[6] && sides.all(|(one, other)| (one - other).abs() <= BOUND)
        };
        let paired = floats
            .iter()
            .filter(|one| bytes.iter().any(|other| is_near(one, other)));
        let (paired, total) = (paired.count(), floats.len().max(bytes.len()));
        println!("{paired} of {total} detections are within {BOUND}");
        assert!(10 * paired >= 9 * total, "{paired} of {total} detections");
    }
}
