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

use super::{answers_to, subjects::Subject};

/// The reference has 264 classes and 256 features. Fewer keep the test short.
const TOPOLOGY: Topology = Topology {
    side: 800,
    classes: 12,
    width: 8,
};
const SAMPLES: usize = 3;
/// The largest difference of scores and of coordinates as fractions.
const BOUND: f64 = 1e-4;

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

/// Returns the values of a made-up image between 0 and 1: large and small shapes of different colours.
fn sample(index: usize) -> Vec<u8> {
    let value = |place: usize| {
        let (channel, y, x) = (place / 640_000, place / 800 % 800, place % 800);
        let wave = |value: usize, length: f32| (value as f32 / length + index as f32).sin();
        let length = [90.0, 37.0, 210.0][(channel + index) % 3];
        let noise = (place.wrapping_mul(2_654_435_761) >> 16 & 0xff) as f32 / 255.0;
        (0.5 + 0.3 * wave(x, length) * wave(y, length) + 0.2 * (noise - 0.5)).clamp(0.0, 1.0)
    };
    (0..3 * 640_000)
        .flat_map(|place| value(place).to_le_bytes())
        .collect()
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
    let (mut paired, mut total) = (0, 0);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let floats = ours
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f64::from(f32::from_le_bytes(*bytes)));
        let floats: Vec<f64> = floats.collect();
        let ours = floats.as_chunks::<7>().0;
        assert!((10..=300).contains(&ours.len()), "{} detections", ours.len());
        assert!(ours.is_sorted_by(|one, next| one[5] >= next[5]));
        let is_near = |one: &[f64; 7], other: &[f64; 7]| {
            one[6] == other[6]
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| (one - other).abs() <= BOUND)
        };
        total += ours.len().max(theirs.len());
        paired += ours
            .iter()
            .filter(|one| theirs.iter().any(|other| is_near(one, other)))
            .count();
    }
    // A difference in the last bit can change which of two boxes suppresses the other.
    assert!(
        100 * paired >= 99 * total,
        "{paired} of {total} detections are within {BOUND}"
    );
    println!("{paired} of {total} detections are within {BOUND}");
}
