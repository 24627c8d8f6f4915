//! What every engine must do, checked on every engine of this build.

use proptest::prelude::*;
use regatta_loadgen::sut::{QuerySample, ResponseId};
use regatta_rules::documents::EngineKind;

use super::{Answers, Batch, Engine, EngineError, Input, LoadRequest, Loaded, load, sim::SimModel};
use crate::fixture::{self, Fixture};

/// The engines of this build.
const ENGINES: &[EngineKind] = &[
    EngineKind::Null,
    EngineKind::Sim,
    #[cfg(feature = "tract")]
    EngineKind::Tract,
];

/// A modelled accelerator that does not hold up the tests.
fn quick_sim() -> SimModel {
    let mut model = SimModel::default();
    model.board.units = SimModel::parse_units("gpu=5+1,dla=7+2").unwrap();
    model.board.jitter = 0.1;
    model.seed = 7;
    model
}

fn load_with(fixture: &Fixture, kind: EngineKind, batch_sizes: &[usize], streams: usize) -> Loaded {
    load(&LoadRequest {
        kind,
        benchmark: &fixture.benchmark(),
        model_file: fixture.path("model.onnx"),
        batch_sizes,
        batch_size_is_wish: true,
        streams,
        sim: &quick_sim(),
    })
    .unwrap()
}

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
    let samples = samples(indices);
    let arena: Vec<u8> = indices.iter().flat_map(|&index| fixture::pixels(index)).collect();
    let mut together = Answers::default();
    let contiguous = Batch {
        samples: &samples,
        input: Input::Contiguous(&arena),
    };
    engine.infer(&contiguous, &mut together).unwrap();

    let reversed: Vec<u8> = indices
        .iter()
        .rev()
        .flat_map(|&index| fixture::pixels(index))
        .collect();
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
    for &kind in ENGINES {
        for (batch_sizes, largest) in [(vec![1], 1), (vec![8, 1, 8], 8), (vec![5], 5)] {
            let mut loaded = load_with(&fixture, kind, &batch_sizes, 3);
            assert_eq!(loaded.engines.len(), 3, "{kind}");
            for engine in &mut loaded.engines {
                assert_eq!(engine.max_batch(), largest, "{kind}");
                for size in 1..=largest {
                    let indices: Vec<usize> = (0..size).map(|i| (i * 11 + size) % fixture::TOTAL).collect();
                    let expected: Vec<_> = indices.iter().map(|&index| expected(kind, index)).collect();
                    assert_eq!(
                        answers(engine.as_mut(), &indices),
                        expected,
                        "{kind}, {size} of {largest}"
                    );
                }
            }
        }
    }
}

#[test]
fn batches_that_were_never_promised_are_refused_and_the_next_one_is_fine() {
    let fixture = Fixture::new();
    for &kind in ENGINES {
        let mut loaded = load_with(&fixture, kind, &[2], 1);
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
                "{kind}: {refused}"
            );
        }
        assert_eq!(
            answers(engine, &[3, 1]),
            [expected(kind, 3), expected(kind, 1)],
            "{kind}"
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
    for &kind in ENGINES.iter().filter(|kind| kind.computes()) {
        let mut loaded = load_with(&fixture, kind, &[2], 1);
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
                "{kind}, {input:?}"
            );
        }
        assert_eq!(
            answers(loaded.engines[0].as_mut(), &[0]),
            [expected(kind, 0)],
            "{kind}"
        );
    }
}

#[test]
fn engines_say_what_they_are() {
    let fixture = Fixture::new();
    for &kind in ENGINES {
        let description = load_with(&fixture, kind, &[1], 1).description;
        assert_eq!(description.kind, kind);
        assert!(
            description.to_string().starts_with(kind.as_str()),
            "{description}"
        );
        assert_eq!(
            description.to_string().contains("no measurement"),
            kind == EngineKind::Sim,
            "{description}"
        );
    }
}

#[test]
fn an_engine_that_is_not_built_in_says_what_is() {
    let fixture = Fixture::new();
    let request = LoadRequest {
        kind: EngineKind::Tensorrt,
        benchmark: &fixture.benchmark(),
        model_file: fixture.path("model.onnx"),
        batch_sizes: &[1],
        batch_size_is_wish: false,
        streams: 1,
        sim: &quick_sim(),
    };
    let refused = load(&request).err().unwrap().to_string();
    assert!(
        refused.starts_with("this agent has no tensorrt engine built in; it has null"),
        "{refused}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Any samples in any batch get the answers that they get alone.
    #[test]
    fn company_does_not_change_an_answer(indices in prop::collection::vec(0..fixture::TOTAL, 1..=8)) {
        let fixture = Fixture::new();
        for &kind in ENGINES {
            let mut loaded = load_with(&fixture, kind, &[1, 8], 1);
            let together = answers(loaded.engines[0].as_mut(), &indices);
            for (answer, &index) in together.iter().zip(&indices) {
                prop_assert_eq!(answer, &answers(loaded.engines[0].as_mut(), &[index])[0]);
            }
        }
    }
}
