//! Classes of volumes by a small network, beside ONNX Runtime and the sliding windows of the reference.

use std::{ffi::OsStr, fs, sync::Arc};

use regatta_test_support::{
    fixture::{Fixture, npy},
    oracle,
    small_unet::{Topology, model},
};
use regatta_types::{benchmark::Benchmark, documents::EngineKind};

use crate::subjects::Subject;
use crate::{Answers, Batch, Input};

/// The reference's sizes, but few features.
const TOPOLOGY: Topology = Topology {
    side: 128,
    classes: 3,
    width: 4,
};
/// Two windows, and twice two.
const VOLUMES: [[usize; 3]; 2] = [[128, 192, 128], [192, 128, 192]];
/// The share of voxels that may differ: where two scores are nearly equal, the last bit of a sum decides.
const BOUND: f64 = 1e-5;

/// Returns the values of a made-up volume as they are after normalisation: shapes and noise.
fn values(volume: [usize; 3]) -> Vec<u8> {
    let [depth, height, width] = volume;
    let value = |place: usize| {
        let [z, y, x] = [place / width / height, place / width % height, place % width];
        let wave = |value: usize, length: f32| (value as f32 / length).sin();
        let noise = (place.wrapping_mul(2_654_435_761) >> 16 & 0xff) as f32 / 255.0;
        (1.5 * wave(z, 11.0) * wave(y, 17.0) * wave(x, 29.0) + noise - 0.5).clamp(-2.34, 2.64)
    };
    (0..depth * height * width)
        .flat_map(|place| value(place).to_le_bytes())
        .collect()
}

#[test]
fn classes_of_volumes_are_those_of_the_reference() {
    let Some(python) = oracle::kits19() else { return };
    let text = include_str!("../../../../configs/benchmarks/3d-unet-99.toml");
    let (fixture, benchmark) = (Fixture::new(), Benchmark::from_toml(text).unwrap());
    let file = fixture.path(&benchmark.model.file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, model(&TOPOLOGY)).unwrap();
    let arrays: Vec<_> = (0..VOLUMES.len())
        .map(|index| fixture.path(&format!("{index}.npy")))
        .collect();
    for (array, volume) in arrays.iter().zip(VOLUMES) {
        let [depth, height, width] = volume;
        fs::write(array, npy("<f4", &[1, depth, height, width], &values(volume))).unwrap();
    }
    let words: Vec<&OsStr> = std::iter::once(file.as_os_str())
        .chain(arrays.iter().map(|path| path.as_os_str()))
        .collect();
    oracle::run(&python, "kits19", "windows.py", &words);
    // One window at a time, and batches of which the last is not full.
    for batch in [1, 3] {
        let subject = Subject::of(EngineKind::Tract);
        let mut loaded = subject
            .load_of_volumes(&benchmark, &fixture, "fp32", &[batch], Arc::new(VOLUMES))
            .unwrap();
        let engine = loaded.engines[0].as_mut();
        assert_eq!((engine.max_batch(), engine.answer_bytes()), (1, 192 * 128 * 192));
        for (index, (array, volume)) in arrays.iter().zip(VOLUMES).enumerate() {
            let theirs = fs::read(array.with_extension("classes")).unwrap();
            let (data, mut answers) = (values(volume), Answers::default());
            let batch = Batch {
                samples: &[index],
                input: Input::Contiguous(&data),
            };
            engine.infer(&batch, &mut answers).unwrap();
            let ours = answers.iter().next().unwrap();
            assert_eq!(ours.len(), theirs.len());
            let differing = ours
                .iter()
                .zip(&theirs)
                .filter(|(one, other)| one != other)
                .count();
            let classes = [0, 1, 2].map(|class| theirs.iter().filter(|&&found| found == class).count());
            assert!(classes.iter().all(|&count| count > 10_000), "{classes:?}");
            println!("{differing} of {} voxels differ", theirs.len());
            assert!(
                (differing as f64) <= BOUND * theirs.len() as f64,
                "{differing} voxels differ"
            );
        }
    }
}

#[test]
fn invalid_window_networks_and_samples_are_refused() {
    let text = include_str!("../../../../configs/benchmarks/3d-unet-99.toml");
    let (fixture, mut benchmark) = (Fixture::new(), Benchmark::from_toml(text).unwrap());
    benchmark.model.input_shape = vec![1, 8, 8, 8];
    let windows = benchmark.model.windows.as_mut().unwrap();
    windows.stride = [4; 3];
    let file = fixture.path(&benchmark.model.file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let small = Topology { side: 8, ..TOPOLOGY };
    fs::write(&file, model(&Topology { classes: 2, ..small })).unwrap();
    let subject = Subject::of(EngineKind::Tract);
    let volumes: Arc<[[usize; 3]]> = Arc::new([[8, 12, 8]]);
    let load = |benchmark: &Benchmark| {
        subject.load_of_volumes(benchmark, &fixture, "fp32", &[2], Arc::clone(&volumes))
    };
    let error = load(&benchmark).err().unwrap().to_string();
    assert!(
        error.contains("its output has 4096 bytes for a window, but 3 classes"),
        "{error}"
    );
    fs::write(&file, model(&small)).unwrap();
    let mut loaded = load(&benchmark).unwrap();
    let data = values([8, 12, 8]);
    let mut infer = |index: usize, data: &[u8]| {
        let batch = Batch {
            samples: &[index],
            input: Input::Contiguous(data),
        };
        loaded.engines[0].infer(&batch, &mut Answers::default())
    };
    infer(0, &data).unwrap();
    assert!(infer(0, &data[4..]).is_err() && infer(1, &data).is_err());
    for wrong in [
        |benchmark: &mut Benchmark| benchmark.model.input_shape = vec![1, 8, 8, 4],
        |benchmark: &mut Benchmark| benchmark.model.input_shape = vec![8, 8, 8],
        |benchmark: &mut Benchmark| benchmark.model.windows.as_mut().unwrap().stride = [0; 3],
        |benchmark: &mut Benchmark| benchmark.model.windows.as_mut().unwrap().classes = 257,
    ] {
        let mut benchmark = benchmark.clone();
        wrong(&mut benchmark);
        let error = load(&benchmark).err().unwrap().to_string();
        assert!(
            error.contains("does not fit the benchmark 3d-unet-99: "),
            "{error}"
        );
    }
}
