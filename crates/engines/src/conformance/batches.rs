//! Tests of batches of every size, and of repeated batches.

use proptest::prelude::*;
use regatta_test_support::fixture::{self, Fixture};

use super::{answers, expected};
use crate::subjects::subjects;

#[test]
fn every_batch_size_up_to_the_largest_is_answered_in_order_on_every_stream() {
    let fixture = Fixture::new();
    for subject in subjects() {
        for (batch_sizes, largest) in [(vec![1], 1), (vec![8, 1, 8], 8), (vec![5], 5)] {
            let mut loaded = subject.load(&fixture, &batch_sizes, 3);
            assert_eq!(loaded.engines.len(), 3 * subject.units(), "{subject}");
            let largest = subject.most(largest);
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A sample gets the same answer in any batch as alone.
    #[test]
    fn response_does_not_depend_on_other_samples_of_the_batch(indices in prop::collection::vec(0..fixture::TOTAL, 1..=8)) {
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
