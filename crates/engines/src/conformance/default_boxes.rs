//! Detections of networks with SSD's outputs, beside ONNX Runtime and the reference's formulas.

use std::sync::Arc;

use regatta_test_support::{
    oracle,
    small_ssd::{MOBILENET, RESNET34, Topology, model},
};
use regatta_types::benchmark::Benchmark;

use super::near_detections::{DetectionFiles, assert_near, image};

const SAMPLES: usize = 3;

/// Compares the detections of a benchmark, whose samples are those of `image` times 2, minus 1.
fn compare(text: &str, topology: &Topology, most: usize) {
    let Some(python) = oracle::onnxruntime() else {
        return;
    };
    let benchmark = Benchmark::from_toml(text).unwrap();
    let side = usize::try_from(topology.side).unwrap();
    let sample = |index| {
        let values = image(index, side).flat_map(|value| (2.0 * value - 1.0).to_le_bytes());
        values.collect::<Vec<u8>>()
    };
    let files = DetectionFiles::new(&benchmark, model(topology), SAMPLES, sample);
    let arguments = [
        benchmark.name.as_ref(),
        files.network.as_os_str(),
        files.samples.as_os_str(),
    ];
    let printed = oracle::run(&python, "onnxruntime", "ssd.py", &arguments);
    let theirs: Vec<Vec<[f64; 7]>> = serde_json::from_str(&printed).unwrap();
    let ours = files.answers(&benchmark, Arc::default());
    assert_near(&ours, &theirs, most, |class| class);
}

#[test]
fn detections_of_ssd_mobilenet_are_those_of_the_reference() {
    let text = include_str!("../../../../configs/benchmarks/ssd-mobilenet.toml");
    compare(text, &MOBILENET, 100);
}

#[test]
fn detections_of_ssd_resnet34_are_those_of_the_reference() {
    let text = include_str!("../../../../configs/benchmarks/ssd-resnet34.toml");
    compare(text, &RESNET34, 200);
}
