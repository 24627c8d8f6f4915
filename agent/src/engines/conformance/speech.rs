//! Transcripts by a small transducer of RNN-T's topology, beside the reference's steps in NumPy and ONNX Runtime.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use npyz::NpyFile;
use regatta_test_support::{fixture::Fixture, oracle};
use regatta_types::{
    benchmark::{Benchmark, Dtype, NetworkState, Transducer},
    documents::EngineKind,
};

use super::{samples, subjects::Subject};
use crate::engines::{Answers, Batch, Engine, EngineError, Input};

/// The values of a padded waveform.
const LONGEST: usize = 240_000;
/// The features of the encoder's layers.
const HIDDEN: usize = 32;
/// The features of the prediction network's layers.
const PREDICTED: usize = 24;

/// Waveforms, networks, and what the reference finds.
struct Speech {
    fixture: Fixture,
    benchmark: Benchmark,
    python: PathBuf,
    waveforms: Vec<f32>,
    lengths: Vec<i32>,
}

impl Speech {
    fn make() -> Option<Self> {
        let python = oracle::librispeech()?;
        let (fixture, mut benchmark) = (Fixture::new(), rnnt());
        let transducer = benchmark.model.transducer.as_mut().unwrap();
        resize(&mut transducer.encoder_states, HIDDEN);
        resize(&mut transducer.prediction_states, PREDICTED);
        let speech = Self {
            waveforms: Vec::new(),
            lengths: Vec::new(),
            fixture,
            benchmark,
            python,
        };
        let place = speech.place();
        speech.run("rnnt.py", &["waveforms".as_ref(), place.as_os_str()]);
        let weights = place.join("weights.npz");
        let hidden = HIDDEN.to_string();
        speech.run(
            "rnnt.py",
            &["weights".as_ref(), weights.as_os_str(), hidden.as_ref()],
        );
        let networks = speech.networks();
        speech.run(
            "../../../tools/export-rnnt",
            &[weights.as_os_str(), networks.as_os_str()],
        );
        Some(Self {
            waveforms: array(&place.join("waveform.npy")),
            lengths: array(&place.join("length.npy")),
            ..speech
        })
    }

    fn place(&self) -> PathBuf {
        self.fixture.path("")
    }

    fn networks(&self) -> PathBuf {
        let encoder = self.fixture.path(&self.benchmark.model.file);
        encoder.parent().unwrap().to_owned()
    }

    fn run(&self, script: &str, words: &[&OsStr]) {
        oracle::run(&self.python, "librispeech", script, words);
    }

    /// Returns samples as a batch has them: waveform and length, one after the other.
    fn arena(&self, indices: &[usize]) -> Vec<u8> {
        let sample = |&index: &usize| {
            let values = self.waveforms[index * LONGEST..][..LONGEST].iter();
            let values = values.flat_map(|value| value.to_le_bytes());
            values
                .chain(self.lengths[index].to_le_bytes())
                .collect::<Vec<u8>>()
        };
        indices.iter().flat_map(sample).collect()
    }

    fn load(&self, batch: usize) -> Result<Vec<Box<dyn Engine>>, EngineError> {
        self.load_on(EngineKind::Tract, batch)
    }

    fn load_on(&self, kind: EngineKind, batch: usize) -> Result<Vec<Box<dyn Engine>>, EngineError> {
        let subject = Subject::of(kind);
        let loaded = subject.load_for(&self.benchmark, &self.fixture, "fp32", &[batch], 1);
        loaded.map(|loaded| loaded.engines)
    }
}

fn rnnt() -> Benchmark {
    Benchmark::from_toml(include_str!("../../../../configs/benchmarks/rnnt.toml")).unwrap()
}

fn resize(states: &mut [NetworkState], features: usize) {
    for state in states {
        state.shape = vec![features];
    }
}

fn array<T: npyz::Deserialize>(path: &Path) -> Vec<T> {
    NpyFile::new(&fs::read(path).unwrap()[..])
        .unwrap()
        .into_vec()
        .unwrap()
}

fn infer(engine: &mut dyn Engine, indices: &[usize], arena: &[u8]) -> Vec<Vec<u8>> {
    let mut answers = Answers::default();
    let batch = Batch {
        samples: &samples(indices),
        input: Input::Contiguous(arena),
    };
    engine.infer(&batch, &mut answers).unwrap();
    answers.iter().map(<[u8]>::to_vec).collect()
}

#[test]
fn transcripts_are_those_of_the_reference_in_every_batch() {
    let Some(speech) = Speech::make() else { return };
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
    for batch in [1, 3, 16] {
        let mut engines = speech.load(batch).map_err(anyhow::Error::from).unwrap();
        let engine = engines[0].as_mut();
        assert_eq!((engine.max_batch(), engine.answer_bytes()), (batch, 250 * 30));
        // Streams of a batch end at different times, and the next batch finds no trace of the last.
        for indices in all.chunks(batch).chain(all.chunks(batch).rev()) {
            let ours = infer(engine, indices, &speech.arena(indices));
            for (index, ours) in indices.iter().zip(ours) {
                assert_eq!(ours, theirs[*index], "utterance {index}, batches of {batch}");
            }
        }
    }
}

#[test]
fn halves_make_the_transcript_of_their_values() {
    let Some(mut speech) = Speech::make() else { return };
    for value in &mut speech.waveforms {
        *value = half::f16::from_f32(*value).to_f32();
    }
    let mut engines = speech.load(1).unwrap();
    let of_floats = infer(engines[0].as_mut(), &[3], &speech.arena(&[3]));
    speech.benchmark.model.input_dtype = Dtype::Float16;
    let values = speech.waveforms[3 * LONGEST..][..LONGEST].iter();
    let halves = values.flat_map(|&value| half::f16::from_f32(value).to_le_bytes());
    let halves: Vec<u8> = halves.chain(speech.lengths[3].to_le_bytes()).collect();
    let mut engines = speech.load(1).unwrap();
    assert_eq!(infer(engines[0].as_mut(), &[3], &halves), of_floats);
    assert!(of_floats[0].len() > 10, "{of_floats:?}");
}

#[test]
fn what_is_no_transducer_or_waveform_is_refused() {
    let Some(mut speech) = Speech::make() else { return };
    let mut engines = speech.load(2).unwrap();
    let mut of_length = |length: i32| {
        speech.lengths[1] = length;
        let (arena, samples) = (speech.arena(&[0, 1]), samples(&[0, 1]));
        let batch = Batch {
            samples: &samples,
            input: Input::Contiguous(&arena),
        };
        let inferred = engines[0].infer(&batch, &mut Answers::default());
        inferred.map_err(|error| format!("{:#}", anyhow::Error::from(error)))
    };
    // The warm-up has blank samples.
    of_length(0).unwrap();
    of_length(257).unwrap();
    for length in [-1, 1, 256, 240_001] {
        let error = of_length(length).unwrap_err();
        let expected = format!("a waveform has {length} values, but 257 to 240000 are needed");
        assert!(error.contains(&expected), "{error}");
    }
    let error = speech.load_on(EngineKind::Tensorrt, 1).err().unwrap().to_string();
    let expected = "the tensorrt engine does not compute the transcripts of rnnt";
    assert!(error.contains(expected), "{error}");
    let whole = speech.benchmark.clone();
    let mut refused = |change: &dyn Fn(&mut Benchmark), expected: &str| {
        speech.benchmark = whole.clone();
        change(&mut speech.benchmark);
        let error = speech.load(1).err().unwrap();
        let error = format!("{:#}", anyhow::Error::from(error));
        assert!(error.contains(expected), "{error}");
    };
    let transducer = |benchmark: &mut Benchmark| benchmark.model.transducer.take().unwrap();
    for change in [
        |transducer: &mut Transducer| transducer.frames = 0,
        |transducer: &mut Transducer| transducer.frames = 51,
        |transducer: &mut Transducer| transducer.symbols = 256,
        |transducer: &mut Transducer| transducer.features.window = 513,
    ] {
        let changed = |benchmark: &mut Benchmark| {
            let mut of_benchmark = transducer(benchmark);
            change(&mut of_benchmark);
            benchmark.model.transducer = Some(of_benchmark);
        };
        refused(&changed, "[model.transducer] needs");
    }
    refused(
        &|benchmark| benchmark.model.transducer.as_mut().unwrap().symbols = 27,
        "its joint network has 29 scores, but 27 symbols and the blank are needed",
    );
    refused(
        &|benchmark| benchmark.model.transducer.as_mut().unwrap().frames = 48,
        "it accepts float32 [",
    );
    refused(
        &|benchmark| benchmark.model.further_inputs.clear(),
        "needs two inputs: a waveform and its length",
    );
    refused(
        &|benchmark| benchmark.model.transducer.as_mut().unwrap().joint = "other.onnx".to_owned(),
        "other.onnx cannot be read",
    );
}
