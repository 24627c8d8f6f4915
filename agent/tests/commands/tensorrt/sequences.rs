//! Tests of sequences of several lengths on the fake of TensorRT: the engine that a run needs is built by the command that it prints.

use regatta_test_support::fixture;

use crate::support::place::{Place, missing_engine};

const NETWORK: [(&str, &str); 3] = [
    ("FAKE_TRT_INPUTS", "3"),
    ("FAKE_TRT_INPUT", "int32"),
    ("FAKE_TRT_FREE", "1"),
];

#[test]
fn an_engine_has_profiles_for_each_length_and_stream() {
    let place = Place::new();
    place.fixture.take_sequences();
    let settings = [
        "sequence_lengths=16,40,64",
        "gpu_batch_size=4",
        "gpu_copy_streams=2",
    ];
    let run = |scenario: &str| place.bench(scenario, "AccuracyOnly", &settings, &NETWORK);
    let missing = run("Offline");
    assert_eq!(missing.code, 3, "{missing:?}");
    let words = missing_engine(&missing.stdout);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(
        words.iter().filter(|&&word| word == "--input-shape").count(),
        9,
        "{words:?}"
    );
    let built = place.agent(&words, &NETWORK);
    assert_eq!(built.code, 0, "{built:?}");
    let expected: Vec<String> = (0..fixture::TOTAL)
        .map(|index| {
            let tokens = fixture::sequence_tokens(index);
            let length = [16, 40, 64].into_iter().find(|&length| length >= tokens).unwrap();
            let answer = fixture::sequence_answer(index, length);
            answer.iter().map(|byte| format!("{byte:02X}")).collect()
        })
        .collect();
    for scenario in ["Offline", "SingleStream", "MultiStream", "Server"] {
        let ended = run(scenario);
        assert_eq!(
            (ended.code, place.raw_answers()),
            (0, expected.clone()),
            "{scenario}: {ended:?}"
        );
    }
}
