//! What every engine offers the harness: its description, and answers to batches. How one is loaded: [`super::load`].

use std::{fmt, sync::Arc};

use regatta_types::documents::EngineKind;

use super::{
    error::EngineError,
    exchange::{Answers, Batch},
    tensorrt::SharedSamples,
};

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

/// Engines over one model, one for each inference stream.
pub(crate) struct Loaded {
    /// What they are.
    pub(crate) description: Description,
    /// The engines.
    pub(crate) engines: Vec<Box<dyn Engine>>,
    /// Memory for the loaded samples from which the engines read without a copy, where there is such.
    pub(crate) shared: Option<Arc<SharedSamples>>,
}
