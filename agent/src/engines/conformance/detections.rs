//! Detections of a network with RetinaNet's heads, beside ONNX Runtime on the same file.

use std::fs;

use regatta_test_support::{
    fixture::Fixture,
    oracle,
    small_retinanet::{Topology, model},
};
use regatta_types::{
    benchmark::{Benchmark, Detections, Dtype},
    documents::EngineKind,
};

use super::{
    answers_to,
    near_detections::{assert_near, image},
    subjects::Subject,
};

/// The reference has 264 classes and 256 features. Fewer keep the test short.
const TOPOLOGY: Topology = Topology {
    side: 800,
    classes: 12,
    width: 8,
};
const SAMPLES: usize = 3;

fn benchmark() -> Benchmark {
    let text = include_str!("../../../../configs/benchmarks/retinanet.toml");
    let mut benchmark = Benchmark::from_toml(text).unwrap();
    assert_eq!(benchmark.model.input_dtype, Dtype::Float32);
    let Some(Detections::Heads(heads)) = &mut benchmark.model.detections else {
        unreachable!("the file has heads");
    };
    heads.classes = TOPOLOGY.classes as usize;
    benchmark
}

fn sample(index: usize) -> Vec<u8> {
    image(index, 800).flat_map(f32::to_le_bytes).collect()
}

#[test]
fn detections_of_the_heads_are_those_of_onnx_runtime() {
    let Some(python) = oracle::onnxruntime() else {
        return;
    };
    let (fixture, benchmark) = (Fixture::new(), benchmark());
    let file = fixture.path(&benchmark.model.file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, model(&TOPOLOGY)).unwrap();
    let samples = fixture.path("images.f32");
    fs::write(&samples, (0..SAMPLES).flat_map(sample).collect::<Vec<u8>>()).unwrap();
    let classes = TOPOLOGY.classes.to_string();
    let arguments = [file.as_os_str(), samples.as_os_str(), classes.as_ref()];
    let printed = oracle::run(&python, "onnxruntime", "retinanet.py", &arguments);
    let theirs: Vec<Vec<[f64; 7]>> = serde_json::from_str(&printed).unwrap();

    let subject = Subject::of(EngineKind::Tract);
    let mut loaded = subject
        .load_for(&benchmark, &fixture, "fp32", &[SAMPLES], 1)
        .unwrap();
    let indices: Vec<usize> = (0..SAMPLES).collect();
    let ours = answers_to(loaded.engines[0].as_mut(), &indices, &sample);
    assert_near(&ours, &theirs, 300, |class| class);
}
