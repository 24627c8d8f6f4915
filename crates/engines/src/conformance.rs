//! Conformance tests of the engine interface, run on every engine of this build. `tensorrt` runs on fakes of CUDA's driver and of
//! TensorRT, with each kind of device use ([`crate::subjects`]). The fakes count per process, so each test needs a separate
//! process, as `cargo nextest` gives it.

mod batches;
#[cfg(feature = "tract")]
mod default_boxes;
#[cfg(feature = "tract")]
mod detections;
mod diffusion;
mod encoder_decoder;
mod errors;
#[cfg(feature = "tract")]
mod exported_heads;
#[cfg(feature = "tract")]
mod near_detections;
#[cfg(feature = "tract")]
mod predictions;
mod resources;
mod samples;
mod sequences;
pub(crate) mod speech;
mod transducer;
#[cfg(feature = "tract")]
mod volumes;
mod windows;

use regatta_test_support::fixture::{self, Fixture};
use regatta_types::documents::EngineKind;

#[cfg(not(feature = "tract"))]
use crate::subjects::Subject;
use crate::{Answers, Batch, Engine, Input, subjects::subjects};

fn expected(kind: EngineKind, index: usize) -> Vec<u8> {
    if kind.computes() {
        fixture::class(index).to_le_bytes().to_vec()
    } else {
        (index as u64).to_le_bytes().to_vec()
    }
}

/// Returns the answers for contiguous data, after a comparison with the answers for scattered data.
fn answers(engine: &mut dyn Engine, indices: &[usize]) -> Vec<Vec<u8>> {
    answers_to(engine, indices, &fixture::pixels)
}

fn answers_to(engine: &mut dyn Engine, indices: &[usize], data: &dyn Fn(usize) -> Vec<u8>) -> Vec<Vec<u8>> {
    let arena: Vec<u8> = indices.iter().flat_map(|&index| data(index)).collect();
    let mut together = Answers::default();
    let contiguous = Batch {
        samples: indices,
        input: Input::Contiguous(&arena),
    };
    engine.infer(&contiguous, &mut together).unwrap();

    let reversed: Vec<u8> = indices.iter().rev().flat_map(|&index| data(index)).collect();
    let slots: Vec<usize> = (0..indices.len()).rev().collect();
    let mut apart = Answers::default();
    let scattered = Batch {
        samples: indices,
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
            description.to_string().contains("not a measurement"),
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
        "this build has no tract engine; it has null, tensorrt, server, sim"
    );
}
