//! Why an engine cannot be loaded or fails. Each message tells this layer only; causes are sources.

use std::{error::Error, io, path::PathBuf};

use regatta_types::documents::EngineKind;

use super::tensorrt::BuildCommand;

/// Why an engine cannot be loaded, or cannot compute.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// The word is right, but this program has no such engine.
    #[cfg(not(feature = "tract"))]
    #[error("this agent has no {engine} engine built in; it has {instead}")]
    NotBuiltIn {
        /// What was asked for.
        engine: EngineKind,
        /// What there is.
        instead: &'static str,
    },
    /// What the engine needs of this machine is not there or does not work.
    #[error("the {engine} engine cannot be used here")]
    Unavailable {
        /// Which engine.
        engine: EngineKind,
        /// What is missing.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A stream of a unit cannot be made.
    #[error(
        "stream {stream} of {unit} cannot be made: beside its tensors it takes {} KiB of the device's memory, of which {} KiB are free; fewer streams or a smaller batch take less",
        needed / 1024,
        free / 1024
    )]
    Stream {
        /// Which, counted from 1.
        stream: usize,
        /// The unit's name.
        unit: String,
        /// Bytes that its context takes.
        needed: u64,
        /// Bytes that are free.
        free: u64,
        /// What the library or the driver says.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// No built engine serves the run.
    #[error("the {engine} engine finds nothing to run in {}: {reason}; this makes one: {command}", cache.display())]
    NoPlan {
        /// Which engine.
        engine: EngineKind,
        /// Where it looked.
        cache: PathBuf,
        /// Why nothing there does.
        reason: String,
        /// The command that builds what is needed.
        command: BuildCommand,
    },
    /// The model's file cannot be read.
    #[error("the model {} cannot be read: put it there, or name the scratch directory that holds it", file.display())]
    ModelUnreadable {
        /// Its path.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The model's file is another one than the benchmark names.
    #[error("the model {} is not the benchmark's: its SHA-256 is {found}, expected {expected}", file.display())]
    ModelDiffers {
        /// Its path.
        file: PathBuf,
        /// SHA-256 of the file, hexadecimal.
        found: String,
        /// SHA-256 in the benchmark's description, hexadecimal.
        expected: String,
    },
    /// The engine's own library refuses the model.
    #[error("{engine} cannot load the model {}", file.display())]
    ModelRefused {
        /// Which engine.
        engine: EngineKind,
        /// The model's path.
        file: PathBuf,
        /// What the library says.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The model is readable but its input or output does not suit the benchmark.
    #[error("the model {} does not fit the benchmark {benchmark}: {reason}", file.display())]
    ModelUnfit {
        /// The model's path.
        file: PathBuf,
        /// The benchmark's name.
        benchmark: String,
        /// What the model has and what the benchmark needs.
        reason: String,
    },
    /// A batch that the engine was never promised.
    #[error("a batch of {given} samples was given to an engine that takes 1 to {max}")]
    BatchSize {
        /// Samples in the batch.
        given: usize,
        /// Most samples that fit.
        max: usize,
    },
    /// The batch's input has another size than its samples need.
    #[error("a batch of {samples} samples came with {given} bytes of input instead of {expected}")]
    InputSize {
        /// Samples in the batch.
        samples: usize,
        /// Bytes given.
        given: usize,
        /// Bytes needed.
        expected: usize,
    },
    /// The engine failed while it computed.
    #[error("{engine} failed while it computed a batch of {samples} samples")]
    Compute {
        /// Which engine.
        engine: EngineKind,
        /// Samples in the batch.
        samples: usize,
        /// What the library says.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl EngineError {
    /// CUDA or TensorRT cannot be used on this machine.
    pub(super) fn tensorrt_unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable {
            engine: EngineKind::Tensorrt,
            source: source.into(),
        }
    }
}
