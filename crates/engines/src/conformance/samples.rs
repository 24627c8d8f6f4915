//! Tests of sample shapes and types. All other tests use fp32 of one shape.

use regatta_test_support::fixture::{self, Fixture};
use regatta_types::benchmark::Dtype;

use super::{answers_to, expected};
use crate::subjects::{Subject, subjects};
use crate::{Answers, Batch, EngineError, Input};

/// `null` and `sim` do not read the samples.
#[test]
fn samples_of_16_and_8_bits_are_taken_by_engines_of_these_types() {
    let fixture = Fixture::new();
    let half = half::f16::ONE.to_le_bytes();
    let takes = |subject: &Subject| subject.has_types() || !subject.kind.computes();
    for subject in subjects().into_iter().filter(takes) {
        for (dtype, element, one) in [
            (Dtype::Float16, "fp16", &half[..]),
            (Dtype::Float16, "fp32", &half[..]),
            (Dtype::Int8, "int8", &[1]),
        ] {
            let mut loaded = subject.load_typed(&fixture, dtype, element).unwrap();
            let indices = [3, 17, 5];
            for engine in &mut loaded.engines {
                let got = answers_to(engine.as_mut(), &indices, &|index| fixture::pixels_as(index, one));
                assert_eq!(
                    got,
                    indices.map(|index| expected(subject.kind, index)),
                    "{subject}, {dtype:?} to {element}"
                );
            }
        }
    }
}

/// A sample has 105 numbers, which fill neither a cache line nor a vector.
#[test]
fn samples_of_an_odd_shape_are_taken_in_every_batch() {
    let fixture = Fixture::new();
    fixture.take_odd_shape();
    for subject in subjects().into_iter().filter(|subject| subject.kind.computes()) {
        let mut loaded = subject.load(&fixture, &[1, 5], 2);
        for engine in &mut loaded.engines {
            for size in 1..=5 {
                let indices: Vec<usize> = (0..size).map(|i| (i * 9 + size) % fixture::TOTAL).collect();
                let got = answers_to(engine.as_mut(), &indices, &|index| fixture::odd_pixels(index).0);
                let expected: Vec<_> = indices
                    .iter()
                    .map(|&index| fixture::odd_pixels(index).1.to_le_bytes())
                    .collect();
                assert_eq!(got, expected, "{subject}, {size}");
            }
        }
        drop(loaded);
        assert_eq!(subject.live_on_device(), 0, "{subject}");
    }
}

/// Inputs are matched by name, not by the network's order. Every input affects the answer.
#[test]
fn samples_of_three_inputs_are_taken_apart() {
    let fixture = Fixture::new();
    fixture.take_three_inputs();
    for subject in subjects().into_iter().filter(|subject| subject.kind.computes()) {
        let loaded = subject.load_for(&fixture.benchmark(), &fixture, "int32", &[1, 4], 2);
        let mut loaded = loaded.unwrap();
        for engine in &mut loaded.engines {
            for size in 1..=4 {
                let indices: Vec<usize> = (0..size).map(|i| (i * 7 + size) % fixture::TOTAL).collect();
                let got = answers_to(engine.as_mut(), &indices, &fixture::three_inputs_bytes);
                let expected: Vec<_> = indices
                    .iter()
                    .map(|&index| expected(subject.kind, index))
                    .collect();
                assert_eq!(got, expected, "{subject}");
            }
            let short = fixture::three_inputs_bytes(0);
            let refused = engine.infer(
                &Batch {
                    samples: &[0],
                    input: Input::Contiguous(&short[4..]),
                },
                &mut Answers::default(),
            );
            assert!(matches!(refused, Err(EngineError::InputSize { .. })), "{subject}");
        }
        drop(loaded);
        assert_eq!(subject.live_on_device(), 0, "{subject}");
    }
}
