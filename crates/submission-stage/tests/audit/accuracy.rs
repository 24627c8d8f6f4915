//! Tests of TEST01's comparison, case by case.

use regatta_submission_stage::audit::{AccuracyCounts, Dtype, compare_accuracy, write_baseline};
use regatta_test_support::tree::put;

use crate::logs::put_accuracy;

fn counts(reference: &[(usize, Vec<u8>)], audited: &[(usize, Vec<u8>)], dtype: Dtype) -> AccuracyCounts {
    let dir = tempfile::tempdir().unwrap();
    let (r, t) = (dir.path().join("r.json"), dir.path().join("t.json"));
    put_accuracy(&r, reference);
    put_accuracy(&t, audited);
    compare_accuracy(&r, &t, dtype, true).unwrap().counts
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn the_text_is_the_scripts() {
    let entries = [(0, vec![1]), (1, vec![2]), (1, vec![3])];
    let counts = counts(&entries, &[(0, vec![1]), (1, vec![9]), (7, vec![0])], Dtype::Byte);
    insta::assert_snapshot!(counts.text(), @r"
    Verifying accuracy. This might take a while...
    Reading accuracy mode results...
    Reading performance mode results...
    num_acc_log_entries = 3
    num_acc_log_duplicate_keys = 1
    num_acc_log_data_mismatch = 1
    num_perf_log_entries = 3
    num_perf_log_qsl_idx_match = 2
    num_perf_log_data_mismatch = 1
    num_missing_qsl_idxs = 1
    TEST FAIL
    ");
    assert!(counts.text().ends_with("TEST FAIL\n\n"));
}

#[test]
fn only_the_first_element_is_compared() {
    let (one, other) = (floats(&[1.5, 2.0]), floats(&[1.5, -7.0]));
    assert!(counts(&[(0, one.clone())], &[(0, other)], Dtype::Float32).passed);
    // Read as bytes, only the first byte counts.
    assert!(counts(&[(0, vec![1, 2])], &[(0, vec![1, 9])], Dtype::Byte).passed);
    assert!(!counts(&[(0, one)], &[(0, floats(&[1.25, 2.0]))], Dtype::Float32).passed);
}

#[test]
fn floats_compare_as_ieee_says() {
    let equal = |one: f32, other: f32| {
        counts(&[(0, floats(&[one]))], &[(0, floats(&[other]))], Dtype::Float32).passed
    };
    assert!(equal(0.0, -0.0));
    assert!(!equal(f32::NAN, f32::NAN));
    // The same bytes as integers.
    let nan = floats(&[f32::NAN]);
    assert!(counts(&[(0, nan.clone())], &[(0, nan)], Dtype::Int32).passed);
}

#[test]
fn a_later_response_is_compared_with_the_one_before() {
    let reference = [(0, vec![1]), (1, vec![1])];
    // Wrong once, then steadily wrong: one mismatch.
    let result = counts(
        &reference,
        &[(0, vec![2]), (0, vec![2]), (0, vec![2])],
        Dtype::Byte,
    );
    assert_eq!((result.matches, result.mismatches), (3, 1));
    // A sample that the accuracy run lacks is known from then on.
    let result = counts(
        &reference,
        &[(9, vec![2]), (9, vec![2]), (9, vec![3])],
        Dtype::Byte,
    );
    assert_eq!((result.unknown, result.matches, result.mismatches), (1, 2, 1));
}

#[test]
fn empty_responses_equal_each_other_only() {
    assert!(counts(&[(0, vec![])], &[(0, vec![])], Dtype::Int64).passed);
    assert!(!counts(&[(0, vec![])], &[(0, vec![0; 8])], Dtype::Int64).passed);
    assert!(!counts(&[(0, vec![0; 8])], &[(0, vec![])], Dtype::Int64).passed);
}

#[test]
fn sample_numbers_of_any_size_are_kept_apart() {
    let far = usize::MAX;
    let entries = [(far, vec![1]), (far - 1, vec![2]), (0, vec![3])];
    let result = counts(&entries, &entries, Dtype::Byte);
    assert_eq!((result.matches, result.mismatches, result.passed), (3, 0, true));
}

#[test]
fn the_baseline_holds_the_audited_samples_as_they_stand_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let entries: Vec<_> = (0..100).map(|index| (index, vec![index as u8; 30_000])).collect();
    put_accuracy(&at("accuracy.json"), &entries);
    put_accuracy(
        &at("audit.json"),
        &[(70, vec![1]), (3, vec![2]), (70, vec![3]), (1_000, vec![])],
    );
    let baseline = write_baseline(&at("accuracy.json"), &at("audit.json"), &at("baseline.json")).unwrap();
    assert_eq!((baseline.entries, baseline.missing), (2, 1));
    let whole = std::fs::read_to_string(at("accuracy.json")).unwrap();
    let line = |number: usize| whole.lines().nth(number + 1).unwrap().trim_end_matches(',');
    let expected = format!("[\n{},\n{}\n]\n", line(3), line(70));
    assert!(std::fs::read_to_string(at("baseline.json")).unwrap() == expected);

    // A truncated log leaves no incomplete baseline.
    put(&at("accuracy.json"), &whole[..whole.len() - 10]);
    assert!(write_baseline(&at("accuracy.json"), &at("audit.json"), &at("baseline.json")).is_err());
    assert!(std::fs::read_to_string(at("baseline.json")).unwrap() == expected);
}
