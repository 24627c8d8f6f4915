//! What tests of engines for speech share: waveforms and networks that oracles make, and samples of a batch.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use npyz::NpyFile;
use regatta_test_support::{counting_allocator::allocations, fixture::Fixture, oracle};
use regatta_types::{benchmark::Benchmark, documents::EngineKind};

use crate::{Answers, Batch, Engine, EngineError, Input, subjects::Subject};

/// Waveforms and networks of a benchmark of speech.
pub(super) struct Speech {
    pub(super) fixture: Fixture,
    pub(super) benchmark: Benchmark,
    python: PathBuf,
    /// The directory of the oracle's scripts.
    oracle: &'static str,
    /// Padded waveforms, one after the other.
    pub(super) waveforms: Vec<f32>,
    pub(super) lengths: Vec<i32>,
}

impl Speech {
    /// Makes the oracle's waveforms with its program `script`. `None` without the oracle's libraries.
    pub(super) fn make(benchmark: &str, oracle: &'static str, script: &str) -> Option<Self> {
        let mut speech = Self {
            fixture: Fixture::new(),
            benchmark: Benchmark::from_toml(benchmark).unwrap(),
            python: oracle::librispeech()?,
            oracle,
            waveforms: Vec::new(),
            lengths: Vec::new(),
        };
        let place = speech.place();
        speech.run(script, &["waveforms".as_ref(), place.as_os_str()]);
        speech.waveforms = array(&place.join("waveform.npy"));
        speech.lengths = array(&place.join("length.npy"));
        Some(speech)
    }

    /// Returns the directory of what the oracle writes.
    pub(super) fn place(&self) -> PathBuf {
        self.fixture.path("")
    }

    /// Returns the directory of the networks.
    pub(super) fn networks(&self) -> PathBuf {
        let encoder = self.fixture.path(&self.benchmark.model.file);
        encoder.parent().unwrap().to_owned()
    }

    pub(super) fn run(&self, script: &str, words: &[&OsStr]) -> String {
        oracle::run(&self.python, self.oracle, script, words)
    }

    /// Returns the values of a padded waveform.
    pub(super) fn longest(&self) -> usize {
        self.benchmark.model.input_shape[0]
    }

    /// Returns the values of a sample, with its padding.
    pub(super) fn waveform(&self, index: usize) -> &[f32] {
        &self.waveforms[index * self.longest()..][..self.longest()]
    }

    /// Returns samples as a batch has them: waveform and length, one after the other.
    pub(super) fn arena(&self, indices: &[usize]) -> Vec<u8> {
        let sample = |&index: &usize| {
            let values = self.waveform(index).iter().flat_map(|value| value.to_le_bytes());
            values
                .chain(self.lengths[index].to_le_bytes())
                .collect::<Vec<u8>>()
        };
        indices.iter().flat_map(sample).collect()
    }

    #[cfg(feature = "tract")]
    pub(super) fn load(&self, batch: usize) -> Result<Vec<Box<dyn Engine>>, EngineError> {
        self.load_on(&Subject::of(EngineKind::Tract), batch, 1)
    }

    pub(super) fn load_on(
        &self,
        subject: &Subject,
        batch: usize,
        streams: usize,
    ) -> Result<Vec<Box<dyn Engine>>, EngineError> {
        let networks = self.benchmark.model.networks().into_iter();
        let networks: Vec<PathBuf> = networks.map(|file| self.fixture.path(&file)).collect();
        let loaded = subject.load_networks(&self.benchmark, &self.fixture, &networks, batch, streams);
        loaded.map(|loaded| loaded.engines)
    }

    /// Checks that the engine refuses a waveform of this length beside a good one, with `expected` in its error.
    #[cfg(feature = "tract")]
    pub(super) fn check_refused_length(&mut self, engine: &mut dyn Engine, length: i32, expected: &str) {
        let error = self.infer_length(engine, length).unwrap_err();
        let error = format!("{:#}", anyhow::Error::from(error));
        assert!(error.contains(expected), "{error}");
    }

    /// Computes a waveform of this length after one of another length.
    #[cfg(feature = "tract")]
    pub(super) fn infer_length(&mut self, engine: &mut dyn Engine, length: i32) -> Result<(), EngineError> {
        self.lengths[1] = length;
        let (arena, samples) = (self.arena(&[0, 1]), [0, 1]);
        let batch = Batch {
            samples: &samples,
            input: Input::Contiguous(&arena),
        };
        engine.infer(&batch, &mut Answers::default())
    }

    /// Checks that the changed benchmark is refused, with `expected` in the error.
    #[cfg(feature = "tract")]
    pub(super) fn check_refused(&mut self, change: impl FnOnce(&mut Benchmark), expected: &str) {
        self.check_refused_on(&Subject::of(EngineKind::Tract), change, expected);
    }

    /// As [`check_refused`](Self::check_refused), on another engine.
    pub(super) fn check_refused_on(
        &mut self,
        subject: &Subject,
        change: impl FnOnce(&mut Benchmark),
        expected: &str,
    ) {
        let whole = self.benchmark.clone();
        change(&mut self.benchmark);
        let error = self.load_on(subject, 1, 1).err().unwrap();
        let error = format!("{:#}", anyhow::Error::from(error));
        assert!(error.contains(expected), "{subject}: {error}");
        self.benchmark = whole;
    }

    /// Checks that the second batch of these samples, and later ones, allocate nothing on the host or the device. tract is not checked, because
    /// it allocates within its library.
    pub(super) fn check_allocations(&self, subject: &Subject, engine: &mut dyn Engine, indices: &[usize]) {
        if subject.kind == EngineKind::Tract {
            return;
        }
        let arena = self.arena(indices);
        let mut answers = Answers::default();
        answers.reserve(indices.len(), engine.answer_bytes());
        let (mut on_host, mut on_device) = (0, 0);
        for round in 0..3 {
            if round == 1 {
                on_device = subject.allocations_on_device();
                on_host = allocations();
            }
            answers.clear();
            let batch = Batch {
                samples: indices,
                input: Input::Contiguous(&arena),
            };
            engine.infer(&batch, &mut answers).unwrap();
        }
        // Asking the device allocates memory.
        assert_eq!(allocations(), on_host, "{subject}");
        assert_eq!(subject.allocations_on_device(), on_device, "{subject}");
    }
}

pub(crate) fn array<T: npyz::Deserialize>(path: &Path) -> Vec<T> {
    NpyFile::new(&fs::read(path).unwrap()[..])
        .unwrap()
        .into_vec()
        .unwrap()
}

/// Returns the answers to a batch, with their numbers of tokens.
pub(super) fn infer(engine: &mut dyn Engine, indices: &[usize], arena: &[u8]) -> Vec<(Vec<u8>, i64)> {
    let mut answers = Answers::default();
    let batch = Batch {
        samples: indices,
        input: Input::Contiguous(arena),
    };
    engine.infer(&batch, &mut answers).unwrap();
    let texts = answers.iter().map(<[u8]>::to_vec);
    texts.zip(answers.token_counts()).collect()
}
