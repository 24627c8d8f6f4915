//! Transcripts by a small encoder and decoder of Whisper's topology, beside the reference's steps in NumPy and ONNX Runtime.

use std::{collections::BTreeSet, fs};

use regatta_types::{benchmark::EncoderDecoder, documents::EngineKind};
use serde_json::json;

use super::speech::{Speech, infer};
use crate::subjects::{Subject, subjects};

type Change = fn(&mut EncoderDecoder);

/// The most tokens of a transcript.
const MAX_TOKENS: usize = 24;

/// Makes small networks, with the weights in `checkpoint`.
fn whisper() -> Option<Speech> {
    let text = include_str!("../../../../configs/benchmarks/whisper.toml");
    let mut speech = Speech::make(text, "whisper", "speech.py")?;
    let networks = speech.benchmark.model.encoder_decoder.as_mut().unwrap();
    *networks = EncoderDecoder {
        layers: 2,
        width: 32,
        vocabulary: 66,
        prompt: vec![60, 61, 62, 63],
        end: 59,
        most_tokens: MAX_TOKENS,
        ..networks.clone()
    };
    let (checkpoint, directory) = (speech.place().join("checkpoint"), speech.networks());
    speech.run("speech.py", &["checkpoint".as_ref(), checkpoint.as_os_str()]);
    speech.run(
        "../../../tools/export-whisper",
        &[
            "--positions".as_ref(),
            networks_of(&speech).positions().to_string().as_ref(),
            checkpoint.as_os_str(),
            directory.as_os_str(),
        ],
    );
    Some(speech)
}

fn networks_of(speech: &Speech) -> &EncoderDecoder {
    speech.benchmark.model.encoder_decoder.as_ref().unwrap()
}

/// Returns the reference's symbols and tokens of each waveform.
fn reference(speech: &Speech) -> Vec<(Vec<u8>, Vec<usize>)> {
    let (place, networks) = (speech.place(), networks_of(speech));
    let rules = json!({
        "prompt": networks.prompt,
        "end": networks.end,
        "most_tokens": networks.most_tokens,
        "suppressed": networks.suppressed,
    });
    let printed = speech.run(
        "speech.py",
        &[
            "tokens".as_ref(),
            place.join("checkpoint").as_os_str(),
            speech.networks().as_os_str(),
            rules.to_string().as_ref(),
            place.as_os_str(),
        ],
    );
    println!("{printed}");
    let of = |index: usize| {
        let read = |kind: &str| fs::read(place.join(format!("{index}.{kind}"))).unwrap();
        (read("symbols"), serde_json::from_slice(&read("tokens")).unwrap())
    };
    (0..speech.lengths.len()).map(of).collect()
}

/// Compares the symbols and the numbers of tokens with the reference's, on engines of this kind.
fn compare_on(kind: EngineKind) {
    let Some(speech) = whisper() else { return };
    let theirs = reference(&speech);
    // Otherwise the test would show little.
    let lengths: BTreeSet<usize> = theirs.iter().map(|(_, tokens)| tokens.len()).collect();
    let kinds: BTreeSet<usize> = theirs.iter().flat_map(|(_, tokens)| tokens).copied().collect();
    assert!(lengths.len() > 3 && kinds.len() > 12, "{theirs:?}");
    let all: Vec<usize> = (0..theirs.len()).collect();
    let of_kind = |subject: &Subject| subject.kind == kind && subject.has_networks();
    for subject in subjects().into_iter().filter(of_kind) {
        for &batch in subject.network_batches() {
            let engines = speech.load_on(&subject, batch, 1).map_err(anyhow::Error::from);
            let mut engines = engines.unwrap_or_else(|error| panic!("{subject}: {error:#}"));
            let engine = engines[0].as_mut();
            // The longest token has eight letters.
            assert_eq!(
                (engine.max_batch(), engine.answer_bytes()),
                (batch, 8 * MAX_TOKENS)
            );
            // Streams of a batch end at different times, and the next batch finds no trace of the last.
            for indices in all.chunks(batch).chain(all.chunks(batch).rev()) {
                let ours = infer(engine, indices, &speech.arena(indices));
                for (index, ours) in indices.iter().zip(ours) {
                    let (symbols, tokens) = &theirs[*index];
                    let count = i64::try_from(tokens.len()).unwrap();
                    assert_eq!(
                        ours,
                        (symbols.clone(), count),
                        "{subject}, waveform {index}, batches of {batch}"
                    );
                }
            }
            if batch == 3 {
                speech.check_allocations(&subject, engine, &all[..batch]);
            }
            drop(engines);
            assert_eq!(subject.live_on_device(), 0, "{subject}");
        }
    }
}

#[cfg(feature = "tract")]
#[test]
fn transcripts_on_the_cpu_are_those_of_the_reference_in_every_batch() {
    compare_on(EngineKind::Tract);
}

#[cfg(all(feature = "tract", feature = "onnxruntime"))]
#[test]
fn transcripts_on_onnx_runtime_are_those_of_the_reference_in_every_batch() {
    compare_on(EngineKind::Onnxruntime);
}

#[test]
fn transcripts_on_tensorrt_are_those_of_the_reference_in_every_batch() {
    compare_on(EngineKind::Tensorrt);
}

#[cfg(feature = "tract")]
#[test]
fn suppressed_tokens_are_never_generated() {
    let Some(mut speech) = whisper() else { return };
    let before = reference(&speech);
    let suppressed = before[3].1[0];
    let networks = speech.benchmark.model.encoder_decoder.as_mut().unwrap();
    networks.suppressed = vec![suppressed];
    let theirs = reference(&speech);
    assert_ne!(theirs[3], before[3]);
    let ours = infer(speech.load(1).unwrap()[0].as_mut(), &[3], &speech.arena(&[3]));
    assert_eq!(ours[0].0, theirs[3].0);
}

#[cfg(feature = "tract")]
#[test]
fn invalid_encoder_decoder_models_and_waveforms_are_refused() {
    let Some(mut speech) = whisper() else { return };
    let mut engines = speech.load(2).unwrap();
    let engine = engines[0].as_mut();
    // The warm-up has blank samples.
    speech.infer_length(engine, 0).unwrap();
    for length in [-1, 480_001] {
        let expected = format!("a waveform has {length} values, but 1 to 480000 are needed");
        speech.check_refused_length(engine, length, &expected);
    }
    let cases: [(Change, &str); 7] = [
        (
            |networks| networks.prompt[2] = 66,
            "[model.encoder_decoder]: `prompt` has the token 66, but `vocabulary` is 66",
        ),
        (
            |networks| networks.vocabulary = 67,
            "tokens.txt does not fit the benchmark whisper: it has 66 lines, but there are 67 tokens",
        ),
        (
            |networks| networks.width = 64,
            "its encoder has 192000 values, but keys and values of 1500 steps have 384000",
        ),
        (|networks| networks.most_tokens = 23, "it accepts float32 ["),
        (|networks| networks.features.bands = 80, "it accepts float32 ["),
        (
            |networks| networks.decoder = "other.onnx".to_owned(),
            "other.onnx cannot be read",
        ),
        (
            |networks| networks.texts = "other.txt".to_owned(),
            "other.txt cannot be read",
        ),
    ];
    for (change, expected) in cases {
        speech.check_refused(
            |benchmark| change(benchmark.model.encoder_decoder.as_mut().unwrap()),
            expected,
        );
    }
    speech.check_refused(
        |benchmark| benchmark.model.further_inputs.clear(),
        "needs two inputs: a waveform and its length",
    );
}

#[test]
fn encoder_decoders_unsupported_by_tensorrt_are_refused() {
    let Some(mut speech) = whisper() else { return };
    let cases: [(Change, &str); 3] = [
        (
            |networks| networks.width = 64,
            "its encoder has 192000 values, but keys and values of 1500 steps have 384000",
        ),
        (
            |networks| networks.most_tokens = 23,
            "decoder.onnx does not fit the benchmark whisper: its engine takes fp32 [1, 2, 2, 27, 32] cache, but a sample is fp32 linear [2, 2, 26, 32] cache",
        ),
        (
            |networks| networks.features.bands = 80,
            "encoder.onnx does not fit the benchmark whisper: its engine takes fp32 [1, 128, 3000] features, but",
        ),
    ];
    for (change, expected) in cases {
        speech.check_refused_on(
            &Subject::of(EngineKind::Tensorrt),
            |benchmark| change(benchmark.model.encoder_decoder.as_mut().unwrap()),
            expected,
        );
    }
}
