//! Detections of networks with SSD's outputs, beside ONNX Runtime and the reference's formulas.

use std::fs;

use regatta_test_support::{
    fixture::Fixture,
    oracle,
    small_ssd::{MOBILENET, RESNET34, Topology, model},
};
use regatta_types::{benchmark::Benchmark, documents::EngineKind};

use super::{
    answers_to,
    near_detections::{assert_near, image},
    subjects::Subject,
};

const SAMPLES: usize = 3;

/// Compares the detections of a benchmark, whose samples are those of `image` times 2, minus 1.
fn compare(text: &str, topology: &Topology, most: usize) {
    let Some(python) = oracle::onnxruntime() else {
        return;
    };
    let (fixture, benchmark) = (Fixture::new(), Benchmark::from_toml(text).unwrap());
    let file = fixture.path(&benchmark.model.file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, model(topology)).unwrap();
    let side = usize::try_from(topology.side).unwrap();
    let sample = |index| {
        let values = image(index, side).flat_map(|value| (2.0 * value - 1.0).to_le_bytes());
        values.collect::<Vec<u8>>()
    };
    let samples = fixture.path("images.f32");
    fs::write(&samples, (0..SAMPLES).flat_map(sample).collect::<Vec<u8>>()).unwrap();
    let arguments = [benchmark.name.as_ref(), file.as_os_str(), samples.as_os_str()];
    let printed = oracle::run(&python, "onnxruntime", "ssd.py", &arguments);
    let theirs: Vec<Vec<[f64; 7]>> = serde_json::from_str(&printed).unwrap();

    let subject = Subject::of(EngineKind::Tract);
    let mut loaded = subject
        .load_for(&benchmark, &fixture, "fp32", &[SAMPLES], 1)
        .unwrap();
    let indices: Vec<usize> = (0..SAMPLES).collect();
    let ours = answers_to(loaded.engines[0].as_mut(), &indices, &sample);
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
