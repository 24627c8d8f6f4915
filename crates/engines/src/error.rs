//! Errors of engines. Each message describes its own layer only. Causes are available as sources.

use std::{error::Error, io, path::PathBuf};

use regatta_types::documents::EngineKind;

use super::{MissingEngine, ModelMismatch};

/// Why an engine cannot be loaded or cannot compute.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// This build does not contain the engine.
    #[error("this build has no {engine} engine; it has {built_in}")]
    NotBuiltIn {
        /// The requested engine.
        engine: EngineKind,
        /// The engines of this build.
        built_in: String,
    },
    /// The settings name something that this machine does not have.
    #[error(transparent)]
    Settings(Box<dyn Error + Send + Sync>),
    /// No engine computes such responses.
    #[error(
        "no engine computes the responses of benchmark {benchmark} yet; null and sim run without a model"
    )]
    NoResponses {
        /// The benchmark's name.
        benchmark: String,
    },
    /// The benchmark's samples or answers are not those of the model server.
    #[error("no model server computes the responses of benchmark {benchmark}: {reason}")]
    NotForServer {
        /// The benchmark's name.
        benchmark: String,
        /// What differs.
        reason: String,
    },
    /// Hardware or software that the engine needs is missing or does not work.
    #[error("the {engine} engine cannot be used here")]
    Unavailable {
        engine: EngineKind,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The calibration that the settings name is missing or damaged.
    #[error(
        "the requested calibration cannot be used; hint: the setting `calibration` names samples or scales below the scratch directory"
    )]
    Calibration(#[source] Box<dyn Error + Send + Sync>),
    /// A stream of a unit cannot be created.
    #[error(
        "stream {stream} of {unit} cannot be created: without its tensors it needs {} KiB of the device's memory, of which {} KiB are free; hint: use fewer streams or a smaller batch",
        needed / 1024,
        free / 1024
    )]
    Stream {
        /// Number of the stream, from 1.
        stream: usize,
        /// The unit's name.
        unit: String,
        /// Bytes that its context needs.
        needed: u64,
        /// Free bytes.
        free: u64,
        /// The library's or the driver's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// No built engine is suitable for the run.
    #[error("the {engine} engine finds no engine in {}: {reason}", missing.cache.display())]
    NotBuilt {
        engine: EngineKind,
        /// Why no engine in the cache is suitable.
        reason: String,
        /// The engine that would be.
        missing: Box<MissingEngine>,
    },
    /// A missing engine cannot be built.
    #[error(transparent)]
    Build(Box<dyn Error + Send + Sync>),
    /// The model file cannot be read.
    #[error("the model {} cannot be read; hint: put it there, or name its scratch directory with --scratch", file.display())]
    ModelUnreadable {
        file: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The model file differs from the benchmark's.
    #[error("the model {} is not the benchmark's: its SHA-256 is {found}, expected {expected}", file.display())]
    ModelDiffers {
        file: PathBuf,
        /// SHA-256 of the file, hexadecimal.
        found: String,
        /// SHA-256 in the benchmark's description, hexadecimal.
        expected: String,
    },
    /// The engine's library rejects the model.
    #[error("{engine} cannot load the model {}", file.display())]
    ModelRefused {
        engine: EngineKind,
        /// The model file.
        file: PathBuf,
        /// The library's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The model's inputs or outputs do not match the benchmark.
    #[error("the model {} does not fit the benchmark {benchmark}: {reason}", file.display())]
    ModelUnfit {
        /// The model file.
        file: PathBuf,
        /// The benchmark's name.
        benchmark: String,
        /// What the model has and what the benchmark needs.
        reason: ModelMismatch,
    },
    /// The batch size is outside the engine's limits.
    #[error("the batch has {size} samples, but the engine accepts 1 to {max}")]
    BatchSize {
        /// Samples in the batch.
        size: usize,
        /// Most samples in a batch.
        max: usize,
    },
    /// The size of the batch's input does not match its samples.
    #[error("a batch of {samples} samples has {size} bytes of input instead of {expected}")]
    InputSize {
        /// Samples in the batch.
        samples: usize,
        /// Actual bytes.
        size: usize,
        /// Expected bytes.
        expected: usize,
    },
    /// A sample cannot be computed.
    #[error("a sample of the batch cannot be computed; hint: make the samples again with `regatta prep`")]
    Sample(#[source] Box<dyn Error + Send + Sync>),
    /// The engine failed during a computation.
    #[error("{engine} failed while it computed a batch of {samples} samples")]
    Compute {
        engine: EngineKind,
        /// Samples in the batch.
        samples: usize,
        /// The library's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl EngineError {
    /// Returns the error for a calibration that cannot be used.
    pub(super) fn calibration(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Calibration(source.into())
    }

    /// Returns the error that CUDA or TensorRT cannot be used on this machine.
    pub(super) fn tensorrt_unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable {
            engine: EngineKind::Tensorrt,
            source: source.into(),
        }
    }
}
