//! Tests of samples of speech through the binary: an array of lengths that is damaged. The networks are missing, so nothing is computed.

use std::fs;

use regatta_test_support::fixture::{Fixture, npy};

use crate::support::{Ended, MLPERF_CONF, USER_CONF, agent, bench_arguments};

/// The values of a padded waveform in the benchmark's file.
const MAX: i32 = 240_000;

/// Runs a benchmark of three waveforms with these lengths.
fn bench(lengths: &[i32; 3]) -> Ended {
    let fixture = Fixture::new();
    let text = include_str!("../../../configs/benchmarks/rnnt.toml");
    let text = text
        .replace("_samples = 2513", "_samples = 3")
        .replace("preprocessed_data/LibriSpeech/fp32", "samples");
    for (name, text) in [
        ("benchmark.toml", text.as_str()),
        ("mlperf.conf", MLPERF_CONF),
        ("user.conf", USER_CONF),
    ] {
        fs::write(fixture.path(name), text).unwrap();
    }
    let values = usize::try_from(MAX).unwrap();
    let waveforms = npy("<f4", &[3, values], &vec![0; 3 * 4 * values]);
    fs::write(fixture.path("samples/waveform.npy"), waveforms).unwrap();
    let lengths = npy("<i4", &[3], &lengths.map(i32::to_le_bytes).concat());
    fs::write(fixture.path("samples/length.npy"), lengths).unwrap();
    let flags = [
        ("--engine", "tract"),
        ("--benchmark", "rnnt"),
        ("--mode", "AccuracyOnly"),
    ];
    agent(fixture.scratch(), &bench_arguments(&flags))
}

#[test]
fn a_waveform_without_a_possible_length_is_refused_with_its_sample_and_file() {
    for wrong in [0, -1, MAX + 1] {
        let ended = bench(&[MAX, wrong, 1]);
        assert_eq!(ended.code, 3, "{ended:?}");
        let expected = format!(
            "the dataset of rnnt cannot be used: ./samples/length.npy has the length {wrong} for sample 1, expected 1 to {MAX}; hint: "
        );
        assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    }
    let ended = bench(&[MAX, 400, 1]);
    assert!(
        ended.stderr.contains("models/rnnt/encoder.onnx"),
        "only the networks are missing: {}",
        ended.stderr
    );
}
