//! Tests of the causes of differing responses: each is injected, and must be found.

use std::fs;

use regatta_submission_stage::audit::{
    Dtype, compare_accuracy,
    explain::{Explanation, Reason, UnitShare, explain},
};
use regatta_types::response_units::{NO_UNIT, RESPONSE_UNITS, ResponseUnits};

use crate::logs::{Numbers, put_accuracy};

type Log = Vec<(usize, Vec<u8>)>;

fn explained(reference: &Log, audited: &Log, dtype: Dtype) -> Explanation {
    explained_with(reference, audited, dtype, None)
}

/// As above, with a file of units beside the audit's log.
fn explained_with(reference: &Log, audited: &Log, dtype: Dtype, units: Option<&[u8]>) -> Explanation {
    let dir = tempfile::tempdir().unwrap();
    let (r, t) = (dir.path().join("r.json"), dir.path().join("t.json"));
    put_accuracy(&r, reference);
    put_accuracy(&t, audited);
    if let Some(units) = units {
        fs::write(dir.path().join(RESPONSE_UNITS), units).unwrap();
    }
    let comparison = compare_accuracy(&r, &t, dtype, true).unwrap();
    explain(&comparison, &r, &t).unwrap()
}

/// Returns responses of one float between 1 and 2, and seven that identify the sample.
fn floats(samples: usize) -> Log {
    let mut numbers = Numbers::new(7);
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
fn no_difference_gives_no_explanation() {
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
fn few_changed_labels_are_explained_as_near_ties() {
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
fn different_responses_to_one_sample_are_explained() {
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
        actual: 16,
    };
    assert_eq!(explanation.reasons, [Reason::All, lengths]);
}

#[test]
fn the_unit_that_computed_them_is_named() {
    let reference = floats(300);
    let mut audited = reference.clone();
    // Every third response is the DLA's, and half of those differ.
    for (_, data) in audited.iter_mut().step_by(6) {
        set_first(data, |first| first * 1.0005);
    }
    let mut noted: Vec<_> = (0..300).map(|index| u8::from(index % 3 == 0)).collect();
    noted[299] = NO_UNIT;
    let noted = ResponseUnits::new(vec!["gpu".to_owned(), "dla0".to_owned()], noted).unwrap();
    let mut bytes = Vec::new();
    noted.write(&mut bytes).unwrap();
    let explanation = explained_with(&reference, &audited, Dtype::Float32, Some(&bytes));
    let share = |unit: Option<&str>, differing, compared| UnitShare {
        unit: unit.map(str::to_owned),
        differing,
        compared,
    };
    assert_eq!(
        explanation.units,
        [
            share(Some("dla0"), 50, 100),
            share(Some("gpu"), 0, 199),
            share(None, 0, 1)
        ]
    );
    let text = explanation.to_string();
    assert!(text.contains("by dla0: 50 differ of 100 compared"), "{text}");
}

#[test]
fn notes_that_do_not_read_are_reported_and_explain_nothing() {
    let reference = floats(50);
    let mut audited = reference.clone();
    set_first(&mut audited[7].1, |first| first + 1.0);
    let explanation = explained_with(&reference, &audited, Dtype::Float32, Some(b"garbage"));
    assert_eq!(explanation.units, []);
    let reported = |reason: &Reason| matches!(reason, Reason::UnitsUnknown { .. });
    assert!(explanation.reasons.iter().any(reported), "{explanation}");
}
