//! Tests of sequences that are computed at several lengths: every engine's answers, and those of a network like BERT beside ONNX Runtime.

use std::sync::Arc;

use regatta_test_support::fixture::{self, Fixture};

use super::answers_to;
use crate::{
    EngineError, LoadRequest, SequenceBuckets,
    subjects::{load_request, subjects},
};

const LENGTHS: [usize; 3] = [16, 40, 64];

fn buckets() -> SequenceBuckets {
    SequenceBuckets::new(
        LENGTHS.to_vec(),
        (0..fixture::TOTAL).map(fixture::sequence_tokens),
    )
}

/// A batch is computed at the length of its longest sample; each answer ends where the sample's own length does.
#[test]
fn an_answer_is_the_same_in_every_batch_and_has_the_full_shape() {
    let fixture = Fixture::new();
    fixture.take_sequences();
    for subject in subjects().into_iter().filter(|subject| subject.has_lengths()) {
        for several in [false, true] {
            let sequences = Arc::new(if several {
                buckets()
            } else {
                SequenceBuckets::default()
            });
            let loaded = subject.load_of_sequences(&fixture, &[1, 4], 2, Arc::clone(&sequences));
            let mut loaded = loaded.unwrap();
            for engine in &mut loaded.engines {
                for start in 0..fixture::TOTAL {
                    let size = 1 + start % 4;
                    let indices: Vec<usize> = (0..size).map(|i| (start + i * 7) % fixture::TOTAL).collect();
                    let got = answers_to(engine.as_mut(), &indices, &fixture::sequence_bytes);
                    let expected: Vec<_> = indices
                        .iter()
                        .map(|&index| fixture::sequence_answer(index, sequences.tokens(index, 64)))
                        .collect();
                    assert_eq!(got, expected, "{subject} {indices:?} {several}");
                }
            }
            drop(loaded);
            assert_eq!(subject.live_on_device(), 0, "{subject}");
        }
    }
}

#[test]
fn the_outputs_of_an_answer_have_the_order_of_their_names() {
    let fixture = Fixture::new();
    fixture.take_sequences();
    let mut benchmark = fixture.benchmark();
    benchmark.model.outputs = ["opposites", "scores"].map(str::to_owned).to_vec();
    let sequences = SequenceBuckets::default();
    for subject in subjects().into_iter().filter(|subject| subject.has_lengths()) {
        let of_subject = subject.request_of_sequences(&fixture, 1, 1, &sequences);
        let request = load_request(&benchmark, &fixture, &[1], 1);
        let mut loaded = subject.load_with(&request, of_subject).unwrap();
        let got = answers_to(loaded.engines[0].as_mut(), &[3], &fixture::sequence_bytes);
        let usual = fixture::sequence_answer(3, sequences.tokens(3, 64));
        let (pairs, _) = usual.as_chunks::<8>();
        let swapped: Vec<u8> = pairs
            .iter()
            .flat_map(|pair| [&pair[4..], &pair[..4]].concat())
            .collect();
        assert_ne!(usual, swapped);
        assert_eq!(got, [swapped], "{subject}");
    }
}

#[test]
fn an_engine_without_the_lengths_is_refused_and_the_missing_one_described() {
    let fixture = Fixture::new();
    fixture.take_sequences();
    let one = SequenceBuckets::default();
    let subjects = subjects();
    let subject = subjects.iter().find(|subject| subject.has_types()).unwrap();
    let request = subject.request_of_sequences(&fixture, 4, 1, &one);
    let benchmark = fixture.benchmark();
    let of_several = LoadRequest {
        sequences: Arc::new(SequenceBuckets::new(vec![16, 64], std::iter::empty())),
        ..load_request(&benchmark, &fixture, &[4], 1)
    };
    let Err(EngineError::NotBuilt { reason, missing, .. }) = subject.load_with(&of_several, request) else {
        panic!("it was loaded, or failed otherwise");
    };
    let difference =
        "1 engine of this model is for other sequences than lengths 16, 64, which sequence_lengths requests";
    assert!(reason.contains(difference), "{reason}");
    let shapes: Vec<_> = missing.input_shapes.iter().map(ToString::to_string).collect();
    let expected = ["16", "64"]
        .map(|length| ["input_ids", "input_mask", "segment_ids"].map(|input| format!("{input}={length}")));
    assert_eq!(shapes, expected.concat());
}

#[cfg(feature = "tract")]
mod beside_onnx_runtime {
    use std::{fs, path::PathBuf};

    use regatta_test_support::{oracle, small_bert};
    use regatta_types::{benchmark::Benchmark, documents::EngineKind};

    use super::*;
    use crate::subjects::Subject;

    const VOCABULARY: usize = 50;
    const FULL: usize = 384;
    const SAMPLES: usize = 12;

    fn tokens(index: usize) -> usize {
        [384, 20, 128, 129, 192, 300, 64, 250, 193, 256, 257, 1][index]
    }

    /// Returns the three inputs of a sample one after another, as `prep` writes them: zeros behind the tokens.
    fn sample(index: usize) -> Vec<u8> {
        let (tokens, question) = (tokens(index), tokens(index) / 4);
        let token =
            |place: usize, number: usize| i32::try_from(if place < tokens { number } else { 0 }).unwrap();
        let ids = (0..FULL).map(|place| token(place, (place * 31 + index * 7) % VOCABULARY));
        let mask = (0..FULL).map(|place| token(place, 1));
        let segments = (0..FULL).map(|place| token(place, usize::from(place >= question)));
        ids.chain(mask)
            .chain(segments)
            .flat_map(i32::to_le_bytes)
            .collect()
    }

    /// Returns the logits of all samples, in batches of up to 4.
    fn logits(
        subject: &Subject,
        benchmark: &Benchmark,
        model_file: PathBuf,
        sequences: Arc<SequenceBuckets>,
    ) -> Vec<Vec<f32>> {
        let fixture = Fixture::new();
        let tensorrt = subject.tensorrt_request(&fixture, "fp32", 1, 1);
        let request = LoadRequest {
            model_file,
            sequences,
            ..load_request(benchmark, &fixture, &[4], 1)
        };
        let mut loaded = subject.load_with(&request, tensorrt).unwrap();
        let indices: Vec<usize> = (0..SAMPLES).collect();
        let batches = indices.chunks(4);
        let answers = batches.flat_map(|batch| answers_to(loaded.engines[0].as_mut(), batch, &sample));
        let numbers = |answer: Vec<u8>| {
            let (numbers, _) = answer.as_chunks::<4>();
            numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
        };
        answers.map(numbers).collect()
    }

    /// The logits of tokens differ by rounding: sums over another number of zeros are grouped in other ways.
    #[test]
    fn berts_logits_are_those_of_the_full_length_and_of_onnx_runtime() {
        for subject in subjects() {
            if [EngineKind::Tract, EngineKind::Onnxruntime].contains(&subject.kind) {
                compare_logits_on(&subject);
            }
        }
    }

    fn compare_logits_on(subject: &Subject) {
        let text = include_str!("../../../../configs/benchmarks/bert-99.toml");
        let benchmark = Benchmark::from_toml(text).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let network = directory.path().join("model.onnx");
        fs::write(&network, small_bert::model(VOCABULARY)).unwrap();
        let lengths = vec![128, 192, 256, FULL];
        let buckets = Arc::new(SequenceBuckets::new(lengths, (0..SAMPLES).map(tokens)));
        let full = logits(subject, &benchmark, network.clone(), Arc::default());
        let short = logits(subject, &benchmark, network.clone(), Arc::clone(&buckets));
        for index in 0..SAMPLES {
            let (full, short) = (&full[index], &short[index]);
            assert_eq!(short.len(), 2 * FULL);
            let own = 2 * buckets.tokens(index, FULL);
            for (place, (full, short)) in full.iter().zip(short).enumerate() {
                if place >= own {
                    assert_eq!(*short, -10_000.0, "sample {index}, {place}");
                } else {
                    assert!(
                        (full - short).abs() <= 2e-5 * full.abs().max(1.0),
                        "sample {index}, {place}: {full} {short}"
                    );
                }
            }
        }
        let Some(python) = oracle::onnxruntime() else {
            return;
        };
        let samples = directory.path().join("samples");
        fs::write(&samples, (0..SAMPLES).flat_map(sample).collect::<Vec<_>>()).unwrap();
        let printed = oracle::run(
            &python,
            "onnxruntime",
            "bert.py",
            &[network.as_os_str(), samples.as_os_str()],
        );
        let theirs: Vec<Vec<f32>> = serde_json::from_str(&printed).unwrap();
        for (index, (ours, theirs)) in short.iter().zip(&theirs).enumerate() {
            let own = 2 * tokens(index);
            for (place, (ours, theirs)) in ours.iter().zip(theirs).take(own).enumerate() {
                let bound = 2e-5 * theirs.abs().max(1.0);
                assert!(
                    (ours - theirs).abs() <= bound,
                    "sample {index}, {place}: {ours} {theirs}"
                );
            }
        }
    }
}
