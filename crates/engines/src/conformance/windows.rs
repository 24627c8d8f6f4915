//! Volumes in sliding windows on the fake of TensorRT: whatever the device's use, the element type and the batch of windows, each voxel
//! has its class, and nothing is allocated for a volume.

use std::sync::Arc;

use regatta_test_support::fixture::Fixture;
use regatta_types::{
    benchmark::{Benchmark, Response, SlidingWindows},
    documents::EngineKind,
};

use regatta_test_support::counting_allocator::allocations;

use crate::{
    Answers, Batch, Engine, Input,
    subjects::{Subject, subjects},
};

/// One window, several along each dimension, and planes that are larger than those of larger volumes.
const VOLUMES: [[usize; 3]; 3] = [[4, 4, 4], [8, 6, 4], [4, 10, 8]];

/// Returns the fixture's benchmark with windows of four voxels.
fn benchmark(fixture: &Fixture) -> Benchmark {
    let mut benchmark = fixture.benchmark();
    benchmark.model.file = "model.onnx".to_owned();
    benchmark.model.sha256 = None;
    benchmark.model.input_shape = vec![1, 4, 4, 4];
    benchmark.model.response = Response::Segmentation;
    benchmark.model.windows = Some(SlidingWindows {
        stride: [2; 3],
        deviation: 0.125,
        classes: 3,
    });
    benchmark
}

/// The value of a voxel: an integer from 0 to 6.
fn value(index: usize, voxel: usize) -> u8 {
    ((voxel.wrapping_mul(2_654_435_761) >> 7) as u8).wrapping_add(index as u8) % 7
}

/// The class with the largest of the fake's scores: 3, the value, and 6 less the value.
const fn class(value: u8) -> u8 {
    match value {
        0..3 => 2,
        3 => 0,
        _ => 1,
    }
}

fn infer(engine: &mut dyn Engine, index: usize, data: &[u8], answers: &mut Answers) {
    let before = allocations();
    let batch = Batch {
        samples: &[index],
        input: Input::Contiguous(data),
    };
    answers.clear();
    engine.infer(&batch, answers).unwrap();
    assert_eq!(allocations() - before, 0, "sample {index}");
}

#[test]
fn each_voxel_has_its_class_in_every_batch_of_windows() {
    let on_tensorrt = |subject: &Subject| subject.kind == EngineKind::Tensorrt;
    for subject in subjects().into_iter().filter(on_tensorrt) {
        for (element, batch) in [("fp32", 1), ("fp32", 4), ("fp16", 3)] {
            let fixture = Fixture::new();
            let benchmark = benchmark(&fixture);
            let mut loaded = subject
                .load_of_volumes(&benchmark, &fixture, element, &[batch], Arc::new(VOLUMES))
                .unwrap_or_else(|error| panic!("{subject}: {:#}", anyhow::Error::from(error)));
            assert!(loaded.shared.is_none());
            for engine in &mut loaded.engines {
                assert_eq!((engine.max_batch(), engine.answer_bytes()), (1, 4 * 10 * 8));
                let mut answers = Answers::default();
                answers.reserve(1, engine.answer_bytes());
                // The list of answers has its size after the first.
                answers.add(1);
                for (index, volume) in VOLUMES.into_iter().enumerate() {
                    let voxels = 0..volume.iter().product::<usize>();
                    let data: Vec<u8> = voxels
                        .clone()
                        .flat_map(|voxel| f32::from(value(index, voxel)).to_le_bytes())
                        .collect();
                    let expected: Vec<u8> = voxels.map(|voxel| class(value(index, voxel))).collect();
                    infer(engine.as_mut(), index, &data, &mut answers);
                    let found = answers.iter().next().unwrap();
                    assert_eq!(found, expected, "{subject} {element} {batch} {volume:?}");
                }
            }
        }
    }
}
