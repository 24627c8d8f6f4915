//! Detections of a network with RetinaNet's heads, beside ONNX Runtime on the same file.

use std::sync::Arc;

use regatta_test_support::{
    oracle,
    small_retinanet::{Topology, model},
};
use regatta_types::benchmark::{Benchmark, Detections, Dtype, Prep};

use super::near_detections::{DetectionFiles, assert_near, image};

const SAMPLES: usize = 3;

fn benchmark() -> Benchmark {
    let text = include_str!("../../../../configs/benchmarks/retinanet.toml");
    let mut benchmark = Benchmark::from_toml(text).unwrap();
    assert_eq!(benchmark.model.input_dtype, Dtype::Float32);
    let Some(Detections::Heads(heads)) = &mut benchmark.model.detections else {
        unreachable!("the file has heads");
    };
    heads.classes = Topology::SMALL.classes as usize;
    benchmark
}

const SIDE: usize = 800;

/// Returns an image as `regatta prep` normalises it.
fn sample(index: usize) -> Vec<u8> {
    let Some(Prep::DetectionImages(prep)) = benchmark().prep else {
        unreachable!("the file has annotated images");
    };
    let normalised = |(place, value): (usize, f32)| {
        let channel = place / (SIDE * SIDE);
        (value - prep.means[channel]) / prep.deviations[channel]
    };
    let values = image(index, SIDE).enumerate().map(normalised);
    values.flat_map(f32::to_le_bytes).collect()
}

#[test]
fn detections_of_the_heads_are_those_of_onnx_runtime() {
    let Some(python) = oracle::onnxruntime() else {
        return;
    };
    let benchmark = benchmark();
    let files = DetectionFiles::new(&benchmark, model(&Topology::SMALL), SAMPLES, sample);
    let classes = Topology::SMALL.classes.to_string();
    let arguments = [
        files.network.as_os_str(),
        files.samples.as_os_str(),
        classes.as_ref(),
    ];
    let printed = oracle::run(&python, "onnxruntime", "retinanet.py", &arguments);
    let theirs: Vec<Vec<[f64; 7]>> = serde_json::from_str(&printed).unwrap();
    let ours = files.answers(&benchmark, Arc::default());
    assert_near(&ours, &theirs, 300, |class| class);
}
