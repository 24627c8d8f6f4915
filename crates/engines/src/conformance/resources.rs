//! Tests of memory and threads: what an engine allocates, when it does so, and that it frees everything.

use std::thread;

use regatta_test_support::fixture::{self, Fixture};
use regatta_types::documents::EngineKind;

use regatta_test_support::counting_allocator::{allocations, held};

use super::{answers, expected};
use crate::{Answers, Batch, Input, subjects::subjects};

/// Streams compute at the same time on their own threads, are dropped when their thread ends, and leave nothing
/// allocated.
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
fn an_engine_frees_what_it_allocated() {
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
        // The first rounds make allocations that last for the whole process.
        let (_, _, before) = (used(), used(), used());
        let after = used();
        assert!(after <= before, "{subject}: {before} bytes, then {after}");
        assert_eq!(subject.live_on_device(), 0, "{subject}");
    }
}

/// tract is not tested, because it allocates for every batch. What ONNX Runtime allocates is not counted.
#[test]
fn once_warm_a_batch_allocates_nothing_on_host_or_device() {
    let fixture = Fixture::new();
    for subject in subjects()
        .into_iter()
        .filter(|subject| subject.kind != EngineKind::Tract)
    {
        let mut loaded = subject.load(&fixture, &[4], 1);
        let engine = loaded.engines[0].as_mut();
        let (samples, arena) = ([1, 2, 3], fixture::pixels(0).repeat(4));
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
        // Compare the host's count first, because asking the device allocates memory.
        assert_eq!(allocations(), on_host, "{subject}");
        assert_eq!(subject.allocations_on_device(), on_device, "{subject}");
    }
}
