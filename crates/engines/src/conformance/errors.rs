//! Tests of rejected models and batches. The batch after a rejected one succeeds.

use regatta_test_support::fixture::{self, Fixture};
use regatta_types::benchmark::{Dtype, Model};

use super::{answers, expected};
use crate::subjects::subjects;
use crate::{Answers, Batch, EngineError, Input};

#[test]
fn batches_that_were_never_promised_are_refused_and_the_next_one_is_fine() {
    let fixture = Fixture::new();
    for subject in subjects() {
        let mut loaded = subject.load(&fixture, &[2], 1);
        let engine = loaded.engines[0].as_mut();
        let most = subject.most(2);
        for size in [0, most + 1] {
            let arena = vec![0; size * fixture::PIXELS * 4];
            let samples = vec![0; size];
            let batch = Batch {
                samples: &samples,
                input: Input::Contiguous(&arena),
            };
            let refused = engine.infer(&batch, &mut Answers::default()).unwrap_err();
            assert!(
                matches!(refused, EngineError::BatchSize { max, .. } if max == most),
                "{subject}: {refused}"
            );
        }
        assert_eq!(
            answers(engine, &[3, 1]),
            [expected(subject.kind, 3), expected(subject.kind, 1)],
            "{subject}"
        );
    }
}

#[test]
fn engines_that_compute_refuse_input_of_the_wrong_size() {
    let fixture = Fixture::new();
    let one = fixture::pixels(0);
    let wrong = [
        Input::Absent,
        Input::Contiguous(&one),
        Input::Scattered {
            arena: &one,
            slots: &[0],
        },
        Input::Scattered {
            arena: &one,
            slots: &[0, 1],
        },
    ];
    for subject in subjects().into_iter().filter(|subject| subject.kind.computes()) {
        let mut loaded = subject.load(&fixture, &[2], 1);
        for input in wrong {
            let refused = loaded.engines[0].infer(
                &Batch {
                    samples: &[0, 1],
                    input,
                },
                &mut Answers::default(),
            );
            assert!(
                matches!(refused, Err(EngineError::InputSize { .. })),
                "{subject}, {input:?}"
            );
        }
        assert_eq!(
            answers(loaded.engines[0].as_mut(), &[0]),
            [expected(subject.kind, 0)],
            "{subject}"
        );
    }
}

/// Each mismatch gives its own error, which names both sides.
#[test]
fn engines_that_compute_refuse_a_model_that_is_not_the_benchmarks() {
    let fixture = Fixture::new();
    let missing = |file: &str| file.replace("model", "missing");
    for subject in subjects().into_iter().filter(|subject| subject.kind.computes()) {
        let load = |change: &dyn Fn(&mut Model)| {
            let mut benchmark = fixture.benchmark();
            change(&mut benchmark.model);
            let loaded = subject.load_for(&benchmark, &fixture, "fp32", &[1], 1);
            loaded.err().unwrap()
        };
        let refused = load(&|model| model.file = missing(&model.file));
        assert!(
            matches!(refused, EngineError::ModelUnreadable { .. }),
            "{subject}: {refused}"
        );
        let refused = load(&|model| model.sha256 = Some("0".repeat(64)));
        assert!(
            matches!(refused, EngineError::ModelDiffers { .. }),
            "{subject}: {refused}"
        );
        for shape in [vec![1, 8, 9], vec![8, 8], vec![64]] {
            let refused = load(&|model| model.input_shape.clone_from(&shape));
            assert!(
                matches!(refused, EngineError::ModelUnfit { .. }),
                "{subject}, {shape:?}: {refused}"
            );
            assert!(
                refused
                    .to_string()
                    .contains(&format!("{}]", shape[shape.len() - 1])),
                "{refused}"
            );
        }
        assert_eq!(subject.live_on_device(), 0, "{subject}");
    }
}

/// Conversions that need a scale, and conversions that an engine does not implement.
#[test]
fn samples_of_a_type_that_the_network_does_not_take_are_refused() {
    let fixture = Fixture::new();
    for subject in subjects().into_iter().filter(|subject| subject.kind.computes()) {
        let of_tract = [
            (Dtype::Float16, "fp32"),
            (Dtype::Int8, "fp32"),
            (Dtype::Int32, "fp32"),
        ];
        let of_tensorrt = [
            (Dtype::Int8, "fp32"),
            (Dtype::Int8, "fp16"),
            (Dtype::Float32, "int8"),
            (Dtype::Float16, "int8"),
        ];
        let refused = if subject.has_types() {
            &of_tensorrt[..]
        } else {
            &of_tract
        };
        for &(dtype, element) in refused {
            let refused = subject.load_typed(&fixture, dtype, element).err().unwrap();
            assert!(
                matches!(refused, EngineError::ModelUnfit { .. }),
                "{subject}, {dtype:?} to {element}: {refused}"
            );
            // The message has the field's word for the type, or the library's.
            let own = format!("{dtype:?}").to_lowercase();
            let message = refused.to_string();
            assert!(
                message.contains(dtype.word()) || message.contains(&own),
                "{message}"
            );
        }
    }
}

#[test]
fn the_output_of_an_answer_is_found_by_its_name() {
    let fixture = Fixture::new();
    for subject in subjects().into_iter().filter(|subject| subject.kind.computes()) {
        let load = |output: &str| {
            let mut benchmark = fixture.benchmark();
            benchmark.model.outputs = vec![output.to_owned()];
            subject.load_for(&benchmark, &fixture, "fp32", &[1], 1)
        };
        let refused = load("missing").err().unwrap().to_string();
        let (_, name) = refused
            .split_once("it has no output `missing`, which `outputs` names; its outputs are ")
            .unwrap_or_else(|| panic!("{subject}: {refused}"));
        let mut loaded = load(name).unwrap();
        assert_eq!(
            answers(loaded.engines[0].as_mut(), &[2]),
            [expected(subject.kind, 2)],
            "{subject}"
        );
    }
}
