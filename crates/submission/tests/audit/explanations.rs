//! Why responses differ: each cause is planted, and must be found.

use regatta_submission::audit::{
    Dtype, compare_accuracy,
    explain::{Explanation, Reason, explain},
};

use crate::logs::{Numbers, put_accuracy};

type Log = Vec<(usize, Vec<u8>)>;

fn explained(reference: &Log, audited: &Log, dtype: Dtype) -> Explanation {
    let dir = tempfile::tempdir().unwrap();
    let (r, t) = (dir.path().join("r.json"), dir.path().join("t.json"));
    put_accuracy(&r, reference);
    put_accuracy(&t, audited);
    let comparison = compare_accuracy(&r, &t, dtype, true).unwrap();
    explain(&comparison, &r, &t).unwrap()
}

/// Responses of one float between 1 and 2 and seven that tell the sample apart.
fn floats(samples: usize) -> Log {
    let mut numbers = Numbers(7);
    (0..samples)
        .map(|index| {
            let first = 1.0 + numbers.below(1 << 20) as f32 / (1 << 20) as f32;
            let mut data = first.to_le_bytes().to_vec();
            data.extend((0..7).flat_map(|_| (numbers.next() as u32).to_le_bytes()));
            (index, data)
        })
        .collect()
}

fn set_first(data: &mut [u8], change: impl Fn(f32) -> f32) {
    let first = f32::from_le_bytes(data[..4].try_into().unwrap());
    data[..4].copy_from_slice(&change(first).to_le_bytes());
}

#[test]
fn nothing_differs_and_nothing_is_said() {
    let log = floats(10);
    let explanation = explained(&log, &log, Dtype::Float32);
    assert_eq!(explanation.to_string(), "no response differs");
    assert_eq!(explanation.reasons, []);
}

#[test]
fn rounding_of_every_other_unit() {
    let reference = floats(1000);
    let mut audited = reference.clone();
    for (_, data) in audited.iter_mut().skip(2).step_by(3) {
        set_first(data, |first| first * 1.0005);
    }
    let explanation = explained(&reference, &audited, Dtype::Float32);
    assert_eq!(
        explanation.reasons,
        [
            Reason::Periodic {
                period: 3,
                remainders: vec![2]
            },
            Reason::Rounding
        ]
    );
    let distances = explanation.distances.unwrap();
    assert!(distances.greatest_relative.unwrap() < 0.00051 && distances.least > 0.0004);
    insta::assert_snapshot!(explanation);
}

#[test]
fn a_few_labels_near_a_tie() {
    let reference: Log = (0..1000)
        .map(|index| (index, vec![(index % 100) as u8, 0, 0, 0]))
        .collect();
    let mut audited = reference.clone();
    for index in [17, 404, 405] {
        audited[index].1[0] ^= 1;
    }
    let explanation = explained(&reference, &audited, Dtype::Int32);
    assert_eq!(explanation.reasons, [Reason::Few]);
    assert_eq!(
        (explanation.responses, explanation.compared, explanation.samples),
        (3, 1000, 3)
    );
    insta::assert_snapshot!(explanation);
}

#[test]
fn samples_numbered_from_one() {
    let reference = floats(100);
    let audited: Log = (1..100)
        .map(|index| (index, reference[index - 1].1.clone()))
        .collect();
    let explanation = explained(&reference, &audited, Dtype::Float32);
    assert_eq!(explanation.reasons, [Reason::All, Reason::Shifted { by: -1 }]);
}

#[test]
fn responses_of_other_queries() {
    let reference = floats(100);
    let mut audited = reference.clone();
    audited.swap(3, 90);
    let (three, ninety) = (audited[3].0, audited[90].0);
    (audited[3].0, audited[90].0) = (ninety, three);
    let explanation = explained(&reference, &audited, Dtype::Float32);
    assert_eq!(
        explanation.reasons,
        [Reason::OfOtherSamples { count: 2 }, Reason::Few]
    );
}

#[test]
fn a_sut_that_does_not_agree_with_itself() {
    let mut reference = floats(50);
    let mut audited: Log = [reference.clone(), reference.clone()].concat();
    for (_, data) in audited.iter_mut().skip(50).take(10) {
        set_first(data, |first| first + 10.0);
    }
    reference.push((0, audited[50].1.clone()));
    let explanation = explained(&reference, &audited, Dtype::Float32);
    assert_eq!(
        explanation.reasons,
        [
            Reason::AuditDisagrees { count: 10 },
            Reason::ReferenceDisagrees { count: 1 }
        ]
        .into_iter()
        .collect::<Vec<_>>()
    );
}

#[test]
fn another_model_and_another_length() {
    let reference = floats(60);
    let mut audited = reference.clone();
    for (_, data) in &mut audited {
        set_first(data, |first| -first);
        data.truncate(16);
    }
    let explanation = explained(&reference, &audited, Dtype::Float32);
    let lengths = Reason::Lengths {
        count: 60,
        qsl_idx: 0,
        expected: 32,
        given: 16,
    };
    assert_eq!(explanation.reasons, [Reason::All, lengths]);
}
