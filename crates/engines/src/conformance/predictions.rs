//! Detections of a network with YOLO's predictions, beside ONNX Runtime and the library of the reference.

use std::ffi::OsStr;

use regatta_test_support::{
    oracle,
    small_yolo::{Topology, model},
};
use regatta_types::benchmark::{Benchmark, Detections};

use super::near_detections::{DetectionFiles, assert_near, image};

/// Width and height of the images: letterboxed above and below, at the sides by an odd number of pixels, and not at all.
const SIZES: [[u32; 2]; 4] = [[640, 480], [333, 500], [2000, 2000], [427, 640]];

fn sample(index: usize) -> Vec<u8> {
    image(index, 640).flat_map(f32::to_le_bytes).collect()
}

#[test]
fn detections_of_predictions_are_those_of_the_reference() {
    let (Some(runtime), Some(ultralytics)) = (oracle::onnxruntime(), oracle::ultralytics()) else {
        return;
    };
    let text = include_str!("../../../../configs/benchmarks/yolo-99.toml");
    let benchmark = Benchmark::from_toml(text).unwrap();
    let Some(Detections::Predictions(settings)) = &benchmark.model.detections else {
        unreachable!("the file has predictions");
    };
    let files = DetectionFiles::new(&benchmark, model(&Topology::SMALL), SIZES.len(), sample);
    let outputs = files.path("outputs.npy");
    let paths = [
        files.network.as_os_str(),
        files.samples.as_os_str(),
        outputs.as_os_str(),
    ];
    oracle::run(&runtime, "onnxruntime", "outputs.py", &paths);
    let sizes = SIZES.map(|[width, height]| format!("{width}x{height}"));
    let mut words: Vec<&OsStr> = vec![outputs.as_os_str()];
    words.extend(sizes.iter().map(OsStr::new));
    let printed = oracle::run(&ultralytics, "ultralytics", "decode.py", &words);
    let theirs: Vec<Vec<[f64; 7]>> = serde_json::from_str(&printed).unwrap();
    let ours = files.answers(&benchmark, SIZES.into());
    let categories = &settings.categories;
    assert_near(&ours, &theirs, 300, |class| f64::from(categories[class as usize]));
}
