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

use super::{answers_to, subjects::Subject};

/// The reference's sizes, but few features.
const TOPOLOGY: Topology = Topology {
    side: 640,
    classes: 80,
    width: 8,
};
/// Width and height of the images: letterboxed above and below, at the sides by an odd number of pixels, and not at all.
const SIZES: [[u32; 2]; 4] = [[640, 480], [333, 500], [2000, 2000], [427, 640]];
/// The largest difference of scores and of coordinates as fractions.
const BOUND: f64 = 1e-4;

/// Returns the values of a made-up image between 0 and 1: large and small shapes of different colours.
fn sample(index: usize) -> Vec<u8> {
    let (side, plane) = (640, 640 * 640);
    let value = |place: usize| {
        let (channel, y, x) = (place / plane, place / side % side, place % side);
        let wave = |value: usize, length: f32| (value as f32 / length + index as f32).sin();
        let length = [90.0, 37.0, 210.0][(channel + index) % 3];
        let noise = (place.wrapping_mul(2_654_435_761) >> 16 & 0xff) as f32 / 255.0;
        (0.5 + 0.3 * wave(x, length) * wave(y, length) + 0.2 * (noise - 0.5)).clamp(0.0, 1.0)
    };
    (0..3 * plane)
        .flat_map(|place| value(place).to_le_bytes())
        .collect()
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
    let (mut paired, mut total) = (0, 0);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let bytes = ours.as_chunks::<4>().0.iter();
        let floats: Vec<f64> = bytes.map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect();
        let ours = floats.as_chunks::<7>().0;
        assert!((10..=300).contains(&ours.len()), "{} detections", ours.len());
        assert!(ours.is_sorted_by(|one, next| one[5] >= next[5]));
        assert!(
            ours.iter()
                .all(|one| one[1..5].iter().all(|side| (0.0..=1.0).contains(side)))
        );
        let is_near = |one: &[f64; 7], other: &[f64; 7]| {
            let category = settings.categories[other[6] as usize];
            let sides = one[..6].iter().zip(&other[..6]);
            one[6] == f64::from(category)
                && sides.into_iter().all(|(one, other)| (one - other).abs() <= BOUND)
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
