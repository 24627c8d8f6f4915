//! Transcripts by a small transducer of RNN-T's topology, beside the reference's steps in NumPy and ONNX Runtime.

use std::fs;

#[cfg(feature = "tract")]
use regatta_types::benchmark::{Dtype, Transducer};
use regatta_types::{benchmark::NetworkState, documents::EngineKind};

use super::speech::{Speech, infer};
use crate::subjects::{Subject, subjects};

/// The features of the encoder's layers.
const HIDDEN: usize = 32;
/// The features of the prediction network's layers.
const PREDICTED: usize = 24;

/// Makes a small transducer, with the weights in `weights.npz`.
fn rnnt() -> Option<Speech> {
    let text = include_str!("../../../../configs/benchmarks/rnnt.toml");
    let mut speech = Speech::make(text, "librispeech", "rnnt.py")?;
    let transducer = speech.benchmark.model.transducer.as_mut().unwrap();
    resize(&mut transducer.encoder_states, HIDDEN);
    resize(&mut transducer.prediction_states, PREDICTED);
    let (weights, networks) = (speech.place().join("weights.npz"), speech.networks());
    let hidden = HIDDEN.to_string();
    speech.run(
        "rnnt.py",
        &["weights".as_ref(), weights.as_os_str(), hidden.as_ref()],
    );
    speech.run(
        "../../../tools/export-rnnt",
        &[weights.as_os_str(), networks.as_os_str()],
    );
    Some(speech)
}

fn resize(states: &mut [NetworkState], features: usize) {
    for state in states {
        state.shape = vec![features];
    }
}

/// Returns the symbols of each waveform that the reference finds.
fn reference(speech: &Speech) -> Vec<Vec<u8>> {
    let place = speech.place();
    let [weights, waveforms, lengths] =
        ["weights.npz", "waveform.npy", "length.npy"].map(|name| place.join(name));
    speech.run(
        "rnnt.py",
        &[
            "symbols".as_ref(),
            weights.as_os_str(),
            speech.networks().as_os_str(),
            waveforms.as_os_str(),
            lengths.as_os_str(),
            place.as_os_str(),
        ],
    );
    let all: Vec<usize> = (0..speech.lengths.len()).collect();
    let theirs: Vec<Vec<u8>> = all
        .iter()
        .map(|index| fs::read(place.join(format!("{index}.symbols"))).unwrap())
        .collect();
    // Otherwise the test would show little.
    let mut kinds: Vec<u8> = theirs.concat();
    kinds.sort_unstable();
    kinds.dedup();
    assert!(kinds.len() > 8, "{kinds:?}");
    theirs
}

/// Compares the symbols with the reference's, on engines of this kind.
fn compare_on(kind: EngineKind) {
    let Some(speech) = rnnt() else { return };
    let theirs = reference(&speech);
    let all: Vec<usize> = (0..theirs.len()).collect();
    let of_kind = |subject: &Subject| subject.kind == kind && subject.has_networks();
    for subject in subjects().into_iter().filter(of_kind) {
        for &batch in subject.network_batches() {
            let engines = speech.load_on(&subject, batch, 2).map_err(anyhow::Error::from);
            let mut engines = engines.unwrap_or_else(|error| panic!("{subject}: {error:#}"));
            assert_eq!(engines.len(), 2 * subject.units(), "{subject}");
            for (number, engine) in engines.iter_mut().enumerate() {
                let engine = engine.as_mut();
                assert_eq!((engine.max_batch(), engine.answer_bytes()), (batch, 250 * 30));
                // Streams of a batch end at different times, and the next batch finds no trace of the last.
                let batches = all.chunks(batch).chain(all.chunks(batch).rev());
                for indices in batches.take(if number == 0 { usize::MAX } else { 2 }) {
                    let ours = infer(engine, indices, &speech.arena(indices));
                    for (index, (ours, tokens)) in indices.iter().zip(ours) {
                        assert_eq!(
                            (&ours, tokens),
                            (&theirs[*index], 0),
                            "{subject}, utterance {index}, batches of {batch}"
                        );
                    }
                }
                if number == 0 {
                    speech.check_allocations(&subject, engine, &all[..batch.min(all.len())]);
                }
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
fn halves_make_the_transcript_of_their_values() {
    let Some(mut speech) = rnnt() else { return };
    for value in &mut speech.waveforms {
        *value = half::f16::from_f32(*value).to_f32();
    }
    let mut engines = speech.load(1).unwrap();
    let of_floats = infer(engines[0].as_mut(), &[3], &speech.arena(&[3]));
    speech.benchmark.model.input_dtype = Dtype::Float16;
    let values = speech.waveform(3).iter();
    let halves = values.flat_map(|&value| half::f16::from_f32(value).to_le_bytes());
    let halves: Vec<u8> = halves.chain(speech.lengths[3].to_le_bytes()).collect();
    let mut engines = speech.load(1).unwrap();
    assert_eq!(infer(engines[0].as_mut(), &[3], &halves), of_floats);
    assert!(of_floats[0].0.len() > 10, "{of_floats:?}");
}

#[cfg(feature = "tract")]
#[test]
fn invalid_transducer_models_and_waveforms_are_refused() {
    let Some(mut speech) = rnnt() else { return };
    let mut engines = speech.load(2).unwrap();
    let engine = engines[0].as_mut();
    // The warm-up has blank samples.
    speech.infer_length(engine, 0).unwrap();
    speech.infer_length(engine, 257).unwrap();
    for length in [-1, 1, 256, 240_001] {
        let expected = format!("a waveform has {length} values, but 257 to 240000 are needed");
        speech.check_refused_length(engine, length, &expected);
    }
    for change in [
        |transducer: &mut Transducer| transducer.frames = 0,
        |transducer: &mut Transducer| transducer.frames = 51,
        |transducer: &mut Transducer| transducer.symbols = 256,
        |transducer: &mut Transducer| transducer.features.window = 513,
    ] {
        speech.check_refused(
            |benchmark| change(benchmark.model.transducer.as_mut().unwrap()),
            "[model.transducer] needs",
        );
    }
    speech.check_refused(
        |benchmark| benchmark.model.transducer.as_mut().unwrap().symbols = 27,
        "its joint network has 29 scores, but 27 symbols and the blank are needed",
    );
    speech.check_refused(
        |benchmark| benchmark.model.transducer.as_mut().unwrap().frames = 48,
        "it accepts float32 [",
    );
    speech.check_refused(
        |benchmark| benchmark.model.further_inputs.clear(),
        "needs two inputs: a waveform and its length",
    );
    speech.check_refused(
        |benchmark| benchmark.model.transducer.as_mut().unwrap().joint = "other.onnx".to_owned(),
        "other.onnx cannot be read",
    );
}

#[test]
fn transducers_unsupported_by_tensorrt_are_refused() {
    let Some(mut speech) = rnnt() else { return };
    let tensorrt = Subject::of(EngineKind::Tensorrt);
    speech.check_refused_on(
        &tensorrt,
        |benchmark| benchmark.model.transducer.as_mut().unwrap().frames = 48,
        "encoder.onnx does not fit the benchmark rnnt: its engine takes fp32 [1, 50, 240] features, but a sample is fp32 linear [48, 240] features",
    );
    speech.check_refused_on(
        &tensorrt,
        |benchmark| {
            let states = &mut benchmark.model.transducer.as_mut().unwrap().prediction_states;
            states[1].name = "other".to_owned();
        },
        "prediction.onnx does not fit the benchmark rnnt: its engine takes int32 [1] symbol, fp32 [1, 24] hidden_0",
    );
    speech.check_refused_on(
        &tensorrt,
        |benchmark| {
            let states = &mut benchmark.model.transducer.as_mut().unwrap().encoder_states;
            states.pop();
        },
        "both need the same inputs with the same names",
    );
    speech.check_refused_on(
        &tensorrt,
        |benchmark| benchmark.model.transducer.as_mut().unwrap().symbols = 27,
        "its joint network has 29 scores, but 27 symbols and the blank are needed",
    );
    speech.check_refused_on(
        &tensorrt,
        |benchmark| benchmark.model.transducer.as_mut().unwrap().joint = "other.onnx".to_owned(),
        "other.onnx cannot be read",
    );
    let on_dla = subjects()
        .into_iter()
        .find(|subject| subject.kind == EngineKind::Tensorrt && !subject.has_networks());
    speech.check_refused_on(
        &on_dla.unwrap(),
        |_| {},
        "a model of several networks runs on GPUs, and DLA was requested; hint: leave out max_dlas",
    );
}
