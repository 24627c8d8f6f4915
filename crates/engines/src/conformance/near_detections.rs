//! Detections of an engine beside those of another program on the same network and samples: files for both, the engine's answers, and the
//! comparison. Does not run the other program.

use std::{fs, path::PathBuf, sync::Arc};

use regatta_test_support::fixture::Fixture;
use regatta_types::{benchmark::Benchmark, documents::EngineKind};

use super::answers_to;
use crate::subjects::Subject;

/// The largest difference of scores and of coordinates as fractions.
const BOUND: f64 = 1e-4;

/// Returns the values of a made-up image between 0 and 1: large and small shapes of different colours.
pub(super) fn image(index: usize, side: usize) -> impl Iterator<Item = f32> {
    let plane = side * side;
    (0..3 * plane).map(move |place| {
        let (channel, y, x) = (place / plane, place / side % side, place % side);
        let wave = |value: usize, length: f32| (value as f32 / length + index as f32).sin();
        let length = [90.0, 37.0, 210.0][(channel + index) % 3];
        let noise = (place.wrapping_mul(2_654_435_761) >> 16 & 0xff) as f32 / 255.0;
        (0.5 + 0.3 * wave(x, length) * wave(y, length) + 0.2 * (noise - 0.5)).clamp(0.0, 1.0)
    })
}

/// A network and its samples in files.
pub(super) struct DetectionFiles {
    fixture: Fixture,
    pub(super) network: PathBuf,
    /// 32-bit floats of all samples, one sample after another.
    pub(super) samples: PathBuf,
    values: Vec<Vec<u8>>,
}

impl DetectionFiles {
    /// Writes the file of a benchmark's network and the samples 0 to `count - 1`.
    pub(super) fn new(
        benchmark: &Benchmark,
        network: Vec<u8>,
        count: usize,
        sample: impl Fn(usize) -> Vec<u8>,
    ) -> Self {
        let fixture = Fixture::new();
        let file = fixture.path(&benchmark.model.file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, network).unwrap();
        let (samples, values) = (
            fixture.path("images.f32"),
            (0..count).map(sample).collect::<Vec<_>>(),
        );
        fs::write(&samples, values.concat()).unwrap();
        Self {
            fixture,
            network: file,
            samples,
            values,
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.fixture.path(name)
    }

    /// Returns the answers of tract to one batch of all samples. `image_sizes` has the width and height of each sample's image; it is empty
    /// for benchmarks that need none.
    pub(super) fn answers(&self, benchmark: &Benchmark, image_sizes: Arc<[[u32; 2]]>) -> Vec<Vec<u8>> {
        let mut loaded = Subject::of(EngineKind::Tract)
            .load_of_images(
                benchmark,
                &self.fixture,
                "fp32",
                &[self.values.len()],
                1,
                image_sizes,
            )
            .unwrap();
        let indices: Vec<usize> = (0..self.values.len()).collect();
        answers_to(loaded.engines[0].as_mut(), &indices, &|index| {
            self.values[index].clone()
        })
    }
}

/// Checks that each answer has from 10 to `most` detections, the best first, and that 99 % of them are near one of `theirs`, whose class becomes
/// `class` of it. A difference in the last bit can change which of two boxes suppresses the other.
pub(super) fn assert_near(
    ours: &[Vec<u8>],
    theirs: &[Vec<[f64; 7]>],
    most: usize,
    class: impl Fn(f64) -> f64,
) {
    let (mut paired, mut total) = (0, 0);
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        let bytes = ours.as_chunks::<4>().0.iter();
        let floats: Vec<f64> = bytes.map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect();
        let ours = floats.as_chunks::<7>().0;
        assert!((10..=most).contains(&ours.len()), "{} detections", ours.len());
        assert!(ours.is_sorted_by(|one, next| one[5] >= next[5]));
        let is_near = |one: &[f64; 7], other: &[f64; 7]| {
            let mut sides = one[..6].iter().zip(&other[..6]);
            one[6] == class(other[6]) && sides.all(|(one, other)| (one - other).abs() <= BOUND)
        };
        total += ours.len().max(theirs.len());
        paired += ours
            .iter()
            .filter(|one| theirs.iter().any(|other| is_near(one, other)))
            .count();
    }
    assert!(
        100 * paired >= 99 * total,
        "{paired} of {total} detections are within {BOUND}"
    );
    println!("{paired} of {total} detections are within {BOUND}");
}
