//! The `null` engine. It answers immediately with the sample's index, so that a run measures LoadGen and the harness
//! alone.
//!
//! The answer is the index as an unsigned 64-bit little-endian integer. The engine does not read sample data. For a benchmark that generates tokens,
//! an answer counts as two tokens, the minimum that LoadGen accepts.

use regatta_types::{benchmark::Model, documents::EngineKind};

use super::{
    Answers, Batch, Description, Engine, EngineBackend, EngineError, EnginePlan, EngineRequest, LoadRequest,
    Loaded,
};

/// The number of tokens to report for an answer that is not a sequence of tokens, if the benchmark's answers are.
const COUNTED_TOKENS: usize = 2;

/// An engine that answers immediately.
struct Null {
    max_batch: usize,
    /// The number of tokens in each answer, as reported to LoadGen.
    tokens: usize,
}

/// The `null` engine with the settings of a run.
pub(super) struct NullBackend {
    plan: EnginePlan,
}

impl EngineBackend for NullBackend {
    fn configure(request: &EngineRequest<'_>) -> Result<Self, EngineError> {
        let plan = EnginePlan {
            answers_at_once: true,
            ..EnginePlan::of_threads(request)
        };
        Ok(Self { plan })
    }

    fn kind(&self) -> EngineKind {
        EngineKind::Null
    }

    fn plan(&self) -> EnginePlan {
        self.plan
    }

    /// Returns one engine per stream. Cannot fail, because nothing is read.
    fn load(&self, request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
        let max_batch = request.batch_sizes.iter().copied().fold(1, usize::max);
        let description = Description {
            kind: EngineKind::Null,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            runs_on: "no model (responds at once with the sample index)".to_owned(),
        };
        let tokens = counted_tokens(&request.benchmark.model);
        let engine = || Box::new(Null { max_batch, tokens }) as Box<dyn Engine>;
        Ok(Loaded {
            description,
            engines: (0..request.streams).map(|_| engine()).collect(),
            shared: None,
        })
    }
}

impl Engine for Null {
    fn max_batch(&self) -> usize {
        self.max_batch
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        batch.size(self.max_batch)?;
        answer_with_indices(batch, self.tokens, answers);
        Ok(())
    }
}

/// Returns the number of tokens to report for each answer of `null` and `sim`.
pub(super) fn counted_tokens(model: &Model) -> usize {
    if model.generates_tokens() {
        COUNTED_TOKENS
    } else {
        0
    }
}

/// Answers every sample with its index, as `null` and `sim` do.
pub(super) fn answer_with_indices(batch: &Batch<'_>, tokens: usize, answers: &mut Answers) {
    for &sample in batch.samples {
        answers.push_generated(&(sample as u64).to_le_bytes(), tokens);
    }
}
