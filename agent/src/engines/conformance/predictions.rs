//! Detections of a network with YOLO's predictions, beside ONNX Runtime and the library of the reference.

use std::{ffi::OsStr, fs};

use regatta_test_support::{
    fixture::Fixture,
    oracle,
    small_yolo::{Topology, model},
};
use regatta_types::{
    benchmark::{Benchmark, Detections},
    documents::EngineKind,
};

use super::{
    answers_to,
    near_detections::{assert_near, image},
    subjects::Subject,
};

/// The reference's sizes, but few features.
const TOPOLOGY: Topology = Topology {
    side: 640,
    classes: 80,
    width: 8,
};
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
    let (fixture, benchmark) = (Fixture::new(), Benchmark::from_toml(text).unwrap());
    let Some(Detections::Predictions(settings)) = &benchmark.model.detections else {
        unreachable!("the file has predictions");
    };
    let file = fixture.path(&benchmark.model.file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, model(&TOPOLOGY)).unwrap();
    let (samples, outputs) = (fixture.path("images.f32"), fixture.path("outputs.npy"));
    let indices: Vec<usize> = (0..SIZES.len()).collect();
    fs::write(
        &samples,
        indices
            .iter()
            .flat_map(|&index| sample(index))
            .collect::<Vec<u8>>(),
    )
    .unwrap();
    let paths = [file.as_os_str(), samples.as_os_str(), outputs.as_os_str()];
    oracle::run(&runtime, "onnxruntime", "outputs.py", &paths);
    let sizes = SIZES.map(|[width, height]| format!("{width}x{height}"));
    let mut words: Vec<&OsStr> = vec![outputs.as_os_str()];
    words.extend(sizes.iter().map(OsStr::new));
    let printed = oracle::run(&ultralytics, "ultralytics", "decode.py", &words);
    let theirs: Vec<Vec<[f64; 7]>> = serde_json::from_str(&printed).unwrap();

    let subject = Subject::of(EngineKind::Tract);
    let mut loaded = subject
        .load_of_images(&benchmark, &fixture, "fp32", &[SIZES.len()], 1, SIZES.into())
        .unwrap();
    let ours = answers_to(loaded.engines[0].as_mut(), &indices, &sample);
    let categories = &settings.categories;
    assert_near(&ours, &theirs, 300, |class| f64::from(categories[class as usize]));
}
