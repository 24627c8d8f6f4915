//! What every engine must do, checked on every engine of this build. `tensorrt` runs over twins of CUDA's driver and of
//! TensorRT, in host memory with graphs and by copies without.

pub(crate) mod subjects;

use std::thread;

use proptest::prelude::*;
use regatta_loadgen::sut::{QuerySample, ResponseId};
use regatta_rules::{benchmark::Dtype, documents::EngineKind};

#[cfg(not(feature = "tract"))]
use self::subjects::Subject;
use self::subjects::subjects;
use super::{Answers, Batch, Engine, EngineError, Input};
use crate::{
    counting_allocator::{allocations, held},
    fixture::{self, Fixture},
};

fn samples(indices: &[usize]) -> Vec<QuerySample> {
    indices
        .iter()
        .map(|&index| QuerySample {
            id: ResponseId(index as u64),
            index,
        })
        .collect()
}

fn expected(kind: EngineKind, index: usize) -> Vec<u8> {
    if kind.computes() {
        fixture::class(index).to_le_bytes().to_vec()
    } else {
        (index as u64).to_le_bytes().to_vec()
    }
}

/// Answers with contiguous data, after holding them against those with scattered data.
fn answers(engine: &mut dyn Engine, indices: &[usize]) -> Vec<Vec<u8>> {
    answers_to(engine, indices, &fixture::pixels)
}

fn answers_to(engine: &mut dyn Engine, indices: &[usize], data: &dyn Fn(usize) -> Vec<u8>) -> Vec<Vec<u8>> {
    let samples = samples(indices);
    let arena: Vec<u8> = indices.iter().flat_map(|&index| data(index)).collect();
    let mut together = Answers::default();
    let contiguous = Batch {
        samples: &samples,
        input: Input::Contiguous(&arena),
    };
    engine.infer(&contiguous, &mut together).unwrap();

    let reversed: Vec<u8> = indices.iter().rev().flat_map(|&index| data(index)).collect();
    let slots: Vec<usize> = (0..indices.len()).rev().collect();
    let mut apart = Answers::default();
    let scattered = Batch {
        samples: &samples,
        input: Input::Scattered {
            arena: &reversed,
            slots: &slots,
        },
    };
    engine.infer(&scattered, &mut apart).unwrap();

    let listed = |answers: &Answers| answers.iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
    assert_eq!(
        listed(&together),
        listed(&apart),
        "where the samples lie must not matter"
    );
    assert_eq!(together.len(), indices.len());
    listed(&together)
}

#[test]
fn every_batch_size_up_to_the_largest_is_answered_in_order_on_every_stream() {
    let fixture = Fixture::new();
    for subject in subjects() {
        for (batch_sizes, largest) in [(vec![1], 1), (vec![8, 1, 8], 8), (vec![5], 5)] {
            let mut loaded = subject.load(&fixture, &batch_sizes, 3);
            assert_eq!(loaded.engines.len(), 3, "{subject}");
            for engine in &mut loaded.engines {
                assert_eq!(engine.max_batch(), largest, "{subject}");
                for size in 1..=largest {
                    let indices: Vec<usize> = (0..size).map(|i| (i * 11 + size) % fixture::TOTAL).collect();
                    let expected: Vec<_> = indices
                        .iter()
                        .map(|&index| expected(subject.kind, index))
                        .collect();
                    assert_eq!(
                        answers(engine.as_mut(), &indices),
                        expected,
                        "{subject}, {size} of {largest}"
                    );
                }
            }
        }
    }
}

#[test]
fn batches_that_were_never_promised_are_refused_and_the_next_one_is_fine() {
    let fixture = Fixture::new();
    for subject in subjects() {
        let mut loaded = subject.load(&fixture, &[2], 1);
        let engine = loaded.engines[0].as_mut();
        for given in [0, 3] {
            let arena = vec![0; given * fixture::PIXELS * 4];
            let samples = samples(&vec![0; given]);
            let batch = Batch {
                samples: &samples,
                input: Input::Contiguous(&arena),
            };
            let refused = engine.infer(&batch, &mut Answers::default()).unwrap_err();
            assert!(
                matches!(refused, EngineError::BatchSize { max: 2, .. }),
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
    let samples = samples(&[0, 1]);
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
                    samples: &samples,
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

/// fp32 is in every other test.
#[test]
fn samples_of_16_and_8_bits_are_taken_by_engines_of_these_types() {
    let fixture = Fixture::new();
    let half = half::f16::ONE.to_le_bytes();
    for subject in subjects() {
        for (dtype, element, one) in [
            (Dtype::Float16, "fp16", &half[..]),
            (Dtype::Float16, "fp32", &half[..]),
            (Dtype::Int8, "int8", &[1]),
        ] {
            let Some(mut loaded) = subject.load_typed(&fixture, dtype, element) else {
                continue;
            };
            let indices = [3, 17, 5];
            let got = answers_to(loaded.engines[0].as_mut(), &indices, &|index| {
                fixture::pixels_as(index, one)
            });
            assert_eq!(
                got,
                indices.map(|index| expected(subject.kind, index)),
                "{subject}, {dtype:?} to {element}"
            );
        }
    }
}

/// By name, whatever the network's own order; every input matters to the answer.
#[test]
fn samples_of_three_inputs_are_taken_apart() {
    let fixture = Fixture::new();
    fixture.take_three_inputs();
    for subject in subjects() {
        let Some(mut loaded) = subject.load_three_inputs(&fixture, 4, 2) else {
            continue;
        };
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
            let samples = samples(&[0]);
            let short = fixture::three_inputs_bytes(0);
            let refused = engine.infer(
                &Batch {
                    samples: &samples,
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

#[test]
fn the_same_input_gets_the_same_answer_however_often() {
    let fixture = Fixture::new();
    for subject in subjects() {
        let mut loaded = subject.load(&fixture, &[4], 2);
        let first = answers(loaded.engines[0].as_mut(), &[9, 2, 31]);
        for engine in &mut loaded.engines {
            for _ in 0..20 {
                assert_eq!(answers(engine.as_mut(), &[9, 2, 31]), first, "{subject}");
            }
        }
    }
}

/// Streams compute at the same time in threads of their own, are given up when their thread ends, and leave nothing behind.
#[test]
fn engines_work_side_by_side_and_end_with_their_threads() {
    let fixture = Fixture::new();
    for subject in subjects() {
        let loaded = subject.load(&fixture, &[4], 3);
        thread::scope(|scope| {
            for (number, mut engine) in loaded.engines.into_iter().enumerate() {
                let subject = &subject;
                scope.spawn(move || {
                    for round in 0..20 {
                        let index = (number * 13 + round) % fixture::TOTAL;
                        let got = answers(engine.as_mut(), &[index]);
                        assert_eq!(got, [expected(subject.kind, index)], "{subject}");
                    }
                });
            }
        });
        drop(loaded.shared);
        assert_eq!(subject.live_on_device(), 0, "{subject}");
    }
}

#[test]
fn what_an_engine_took_is_given_back_with_it() {
    let fixture = Fixture::new();
    for subject in subjects() {
        let used = || {
            let mut loaded = subject.load(&fixture, &[4], 2);
            for engine in &mut loaded.engines {
                answers(engine.as_mut(), &[1, 2, 3]);
            }
            drop(loaded);
            held()
        };
        // What is made once for the whole process is made in the first rounds.
        let (_, _, before) = (used(), used(), used());
        let after = used();
        assert!(after <= before, "{subject}: {before} bytes, then {after}");
        assert_eq!(subject.live_on_device(), 0, "{subject}");
    }
}

/// tract allocates for every batch, within its own library.
#[test]
fn once_warm_a_batch_allocates_nothing_on_host_or_device() {
    let fixture = Fixture::new();
    for subject in subjects()
        .into_iter()
        .filter(|subject| subject.kind != EngineKind::Tract)
    {
        let mut loaded = subject.load(&fixture, &[4], 1);
        let engine = loaded.engines[0].as_mut();
        let (samples, arena) = (samples(&[1, 2, 3]), fixture::pixels(0).repeat(4));
        let (slots, mut answers) = (vec![2, 0, 1], Answers::default());
        let inputs = [
            Input::Contiguous(&arena[..3 * fixture::PIXELS * 4]),
            Input::Scattered {
                arena: &arena,
                slots: &slots,
            },
        ];
        let (mut on_device, mut on_host) = (0, 0);
        for round in 0..40 {
            if round == 3 {
                on_device = subject.allocations_on_device();
                on_host = allocations();
            }
            for input in inputs {
                answers.clear();
                let samples = &samples;
                engine.infer(&Batch { samples, input }, &mut answers).unwrap();
            }
        }
        // Asking the device takes memory of its own.
        assert_eq!(allocations(), on_host, "{subject}");
        assert_eq!(subject.allocations_on_device(), on_device, "{subject}");
    }
}

#[test]
fn engines_say_what_they_are() {
    let fixture = Fixture::new();
    for subject in subjects() {
        let description = subject.load(&fixture, &[1], 1).description;
        assert_eq!(description.kind, subject.kind);
        assert!(
            description.to_string().starts_with(subject.kind.as_str()),
            "{description}"
        );
        assert_eq!(
            description.to_string().contains("no measurement"),
            subject.kind == EngineKind::Sim,
            "{description}"
        );
    }
}

#[cfg(not(feature = "tract"))]
#[test]
fn an_engine_that_is_not_built_in_says_what_is() {
    let refused = Subject::of(EngineKind::Tract).try_load(&Fixture::new(), &[1], 1);
    assert_eq!(
        refused.err().unwrap().to_string(),
        "this agent has no tract engine built in; it has null, tensorrt, sim"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Any samples in any batch get the answers that they get alone.
    #[test]
    fn company_does_not_change_an_answer(indices in prop::collection::vec(0..fixture::TOTAL, 1..=8)) {
        let fixture = Fixture::new();
        for subject in subjects() {
            let mut loaded = subject.load(&fixture, &[1, 8], 1);
            let together = answers(loaded.engines[0].as_mut(), &indices);
            for (answer, &index) in together.iter().zip(&indices) {
                prop_assert_eq!(answer, &answers(loaded.engines[0].as_mut(), &[index])[0]);
            }
        }
    }
}
