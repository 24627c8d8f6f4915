//! What computes the answers: the face that every engine shows to the harness, and the way to load one by name.
//!
//! An engine belongs to one thread at a time and knows nothing of LoadGen's scenarios, queues or logs.

#[cfg(test)]
pub(crate) mod conformance;
mod error;
mod exchange;
mod model_file;
mod null;
mod numbers;
pub(crate) mod sim;
pub(crate) mod tensorrt;
#[cfg(feature = "tract")]
mod tract;

use std::{fmt, path::PathBuf, sync::Arc};

use regatta_rules::{benchmark::Benchmark, documents::EngineKind};

pub(crate) use error::EngineError;
pub(crate) use exchange::{Answers, Batch, Input};

/// One engine, ready to compute.
pub(crate) trait Engine: Send {
    /// Most samples that one [`infer`](Self::infer) takes, at least one.
    fn max_batch(&self) -> usize;

    /// Which of the chip's units it computes on, numbered from 0. Engines of one unit take turns on it.
    fn unit(&self) -> usize {
        0
    }

    /// That unit's name, such as `gpu` or `dla0`.
    fn unit_name(&self) -> String {
        format!("unit{}", self.unit())
    }

    /// Computes the answers of a batch of 1 to [`max_batch`](Self::max_batch) samples and adds one answer per sample
    /// to `answers`, in the batch's order. Equal inputs give equal answers, whatever batch they come in.
    ///
    /// # Errors
    /// [`EngineError`] when the batch does not fit or the engine fails; what was added to `answers` is then void.
    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError>;
}

/// An engine in words, as it stands in logs and evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    /// Which engine.
    pub(crate) kind: EngineKind,
    /// Its version.
    pub(crate) version: String,
    /// What it runs on, with the threads that it uses there.
    pub(crate) runs_on: String,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} on {}", self.kind, self.version, self.runs_on)
    }
}

/// What is asked of an engine.
#[derive(Debug)]
pub(crate) struct LoadRequest<'a> {
    /// Which engine.
    pub(crate) kind: EngineKind,
    /// The benchmark, whose samples the model's input must fit.
    pub(crate) benchmark: &'a Benchmark,
    /// The model's file.
    pub(crate) model_file: PathBuf,
    /// The batch sizes to be quick at, each at least 1; never empty. Other sizes up to the largest work as well.
    pub(crate) batch_sizes: &'a [usize],
    /// Whether the user asked for the largest of these sizes by name, so that a smaller one is no substitute.
    #[cfg_attr(
        not(feature = "tract"),
        expect(dead_code, reason = "TensorRT's wish has each unit's own batch")
    )]
    pub(crate) batch_size_is_wish: bool,
    /// Whether batches of any size serve the run as well, so that an engine may set its own.
    pub(crate) takes_any_batch: bool,
    /// How many engines over the same model are wanted, at least 1.
    pub(crate) streams: usize,
    /// The modelled accelerator, read by `sim` alone.
    pub(crate) sim: &'a sim::SimModel,
    /// What is asked of the units, read by `tensorrt` alone.
    pub(crate) tensorrt: &'a tensorrt::Wish,
}

/// Engines over one model, one for each inference stream.
pub(crate) struct Loaded {
    /// What they are.
    pub(crate) description: Description,
    /// The engines.
    pub(crate) engines: Vec<Box<dyn Engine>>,
    /// Memory for the loaded samples from which the engines read without a copy, where there is such.
    pub(crate) shared: Option<Arc<tensorrt::SharedSamples>>,
}

/// Loads the engines that are asked for.
///
/// # Errors
/// [`EngineError`] when this build lacks the engine, or the model is missing, damaged, or does not fit the samples.
pub(crate) fn load(request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
    match request.kind {
        EngineKind::Null => Ok(null::load(request)),
        EngineKind::Sim => Ok(sim::load(request)),
        #[cfg(feature = "tract")]
        EngineKind::Tract => tract::load(request),
        #[cfg(not(feature = "tract"))]
        EngineKind::Tract => Err(EngineError::NotBuiltIn {
            engine: request.kind,
            instead: "null, tensorrt, sim",
        }),
        EngineKind::Tensorrt => tensorrt::load(request),
    }
}
