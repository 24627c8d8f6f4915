//! The interface between engines and the harness: a description, and answers to batches. [`super::load()`] loads engines.

use std::{fmt, sync::Arc};

use regatta_types::documents::EngineKind;

use super::{
    error::EngineError,
    exchange::{Answers, Batch},
    tensorrt::SharedSamples,
};

/// Takes the first token of an answer as soon as it is generated: the sample's place in the batch, and the token.
pub type FirstTokens<'a> = dyn FnMut(usize, &[u8]) + 'a;

/// An engine that is ready to compute.
pub trait Engine: Send {
    /// Returns the most samples that one [`infer`](Self::infer) accepts, at least one.
    fn max_batch(&self) -> usize;

    /// Returns the number of the chip's unit that the engine uses, from 0. Engines on the same unit take turns.
    fn unit(&self) -> usize {
        0
    }

    /// Returns the name of that unit, for example `gpu` or `dla0`.
    fn unit_name(&self) -> String {
        format!("unit{}", self.unit())
    }

    /// Returns the bytes of the largest answer, for engines whose answers are large. Their memory is then reserved before a run.
    fn answer_bytes(&self) -> usize {
        0
    }

    /// Computes the answers of a batch of 1 to [`max_batch`](Self::max_batch) samples. Adds one answer per sample to
    /// `answers`, in the batch's order. Equal inputs give equal answers in any batch.
    ///
    /// # Errors
    /// [`EngineError`] when the batch does not fit or the engine fails. The answers that were added are then invalid.
    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError>;

    /// Returns whether [`infer_streaming`](Self::infer_streaming) passes on first tokens.
    fn streams_tokens(&self) -> bool {
        false
    }

    /// Computes answers as [`infer`](Self::infer) does, and passes on the first token of each while the answer is generated. Engines that
    /// compute complete answers pass on none.
    ///
    /// # Errors
    /// As [`infer`](Self::infer).
    fn infer_streaming(
        &mut self,
        batch: &Batch<'_>,
        answers: &mut Answers,
        _first_tokens: &mut FirstTokens<'_>,
    ) -> Result<(), EngineError> {
        self.infer(batch, answers)
    }
}

/// The description of an engine, for logs and evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    pub kind: EngineKind,
    pub version: String,
    /// The hardware that it runs on, and its threads there.
    pub runs_on: String,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} on {}", self.kind, self.version, self.runs_on)
    }
}

/// Engines for one model, one per inference stream.
pub struct Loaded {
    pub description: Description,
    pub engines: Vec<Box<dyn Engine>>,
    /// Allocator of memory for samples that the engines read without a copy, if supported.
    pub shared: Option<Arc<SharedSamples>>,
}
