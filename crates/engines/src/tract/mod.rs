//! The `tract` engine: ONNX on the CPU, in pure Rust. Each stream computes on its own calling thread only.
//!
//! tract is fast with fixed shapes, so there is one plan for each batch size and length of sequences of the run, created when the
//! model is loaded. A batch of another size uses the next larger plan and leaves the last rows unused. The engine does not
//! quantise. It only converts 32-bit integers to 64 bits; otherwise the model's input must have the samples' type.

mod model;
mod network;

use std::{
    error::Error,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use regatta_types::{benchmark::Response, documents::EngineKind};
use tract_onnx::prelude::{TVec, Tensor, TractResult, TypedSimpleState};
use tract_onnx::tract_core::value::{IntoTValue, TValue};

use self::model::Plan;
use super::{
    Answers, Batch, Description, DetectionDecoder, Engine, EngineBackend, EngineError, EnginePlan,
    EngineRequest, LoadRequest, Loaded, SequenceBuckets,
    numbers::{largest, widen},
};
use crate::panics::panic_text;

/// The version of tract in this build. A test compares it with the lock file.
const TRACT_VERSION: &str = "0.23.9";

/// The `tract` engine with the settings of a run.
pub(super) struct TractBackend {
    plan: EnginePlan,
}

impl EngineBackend for TractBackend {
    fn configure(request: &EngineRequest<'_>) -> Result<Self, EngineError> {
        let plan = EnginePlan::of_threads(request);
        Ok(Self { plan })
    }

    fn kind(&self) -> EngineKind {
        EngineKind::Tract
    }

    fn plan(&self) -> EnginePlan {
        self.plan
    }

    fn load(&self, request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
        load(request)
    }
}

/// Loads the model once, and creates an engine with its plans for each stream.
fn load(request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
    // tract uses assertions for many checks. An unusual model must not end the process.
    let plans = catch_unwind(AssertUnwindSafe(|| model::plans(request))).unwrap_or_else(|panic| {
        Err(model::refused(
            request,
            format!("it panicked: {}", panic_text(panic.as_ref())).into(),
        ))
    })?;
    let engines: Result<Vec<_>, EngineError> = (0..request.streams)
        .map(|_| {
            let states = plans
                .iter()
                .map(|plan| PlanState::new(plan, request))
                .collect::<Result<_, _>>()?;
            let decoder = plans.first().map(|plan| model::decoder(request, &plan.rows));
            Ok(Box::new(Tract {
                states,
                sequences: Arc::clone(&request.sequences),
                full: request.benchmark.model.sequence_length().unwrap_or(0),
                decoder: decoder.transpose()?.flatten(),
                response: request.benchmark.model.response,
                class_offset: request.benchmark.model.class_offset,
            }) as Box<dyn Engine>)
        })
        .collect();
    let description = Description {
        kind: EngineKind::Tract,
        version: TRACT_VERSION.to_owned(),
        runs_on: format!("the CPU ({}, 1 thread per stream)", std::env::consts::ARCH),
    };
    Ok(Loaded {
        description,
        engines: engines?,
        shared: None,
    })
}

/// A stream's state of a plan, with reusable input tensors.
struct PlanState {
    batch_size: usize,
    bucket: usize,
    sample_bytes: usize,
    state: TypedSimpleState,
    inputs: Vec<StateInput>,
}

/// The tensor of one input.
struct StateInput {
    /// The input's byte range within a sample.
    part: Range<usize>,
    is_widened: bool,
    tensor: Arc<Tensor>,
}

impl StateInput {
    fn fill(&mut self, batch: &Batch<'_>, sample_bytes: usize) -> Result<(), EngineError> {
        if Arc::get_mut(&mut self.tensor).is_none() {
            // A plan may return its input as its output. The caller then owns that tensor, and a new one is needed.
            self.tensor = Arc::new(self.tensor.deep_clone());
        }
        let Some(tensor) = Arc::get_mut(&mut self.tensor) else {
            return Ok(());
        };
        if !self.is_widened {
            return batch.copy_input(sample_bytes, &self.part, tensor.as_bytes_mut());
        }
        let places = tensor.as_bytes_mut().chunks_exact_mut(2 * self.part.len());
        batch.each_sample(sample_bytes, places, |sample, place| {
            widen(&sample[self.part.clone()], place);
        })
    }
}

impl PlanState {
    fn new(plan: &Plan, request: &LoadRequest<'_>) -> Result<Self, EngineError> {
        let refused = |source: tract_onnx::prelude::TractError| model::refused(request, source.into());
        let state = plan.runnable.spawn().map_err(refused)?;
        let inputs = plan.inputs.iter().map(|input| {
            Ok(StateInput {
                part: input.part.bytes.clone(),
                is_widened: input.is_widened,
                tensor: Arc::new(input.tensor(plan.batch_size)?),
            })
        });
        Ok(Self {
            batch_size: plan.batch_size,
            bucket: plan.bucket,
            sample_bytes: plan.sample_bytes,
            state,
            inputs: inputs.collect::<Result<_, _>>().map_err(refused)?,
        })
    }

    /// Runs the plan on the batch and returns its outputs, at least one.
    fn run(&mut self, batch: &Batch<'_>) -> Result<TVec<TValue>, EngineError> {
        for input in &mut self.inputs {
            input.fill(batch, self.sample_bytes)?;
        }
        let failed = |source: Box<dyn Error + Send + Sync>| EngineError::Compute {
            engine: EngineKind::Tract,
            samples: batch.samples.len(),
            source,
        };
        let inputs = self
            .inputs
            .iter()
            .map(|input| Arc::clone(&input.tensor).into_tvalue());
        let outputs = self
            .state
            .run(inputs.collect())
            .map_err(|source| failed(source.into()))?;
        if outputs.is_empty() {
            return Err(failed("the model has no output".into()));
        }
        Ok(outputs)
    }
}

/// One stream.
struct Tract {
    /// The plans' states by ascending length of sequences and batch size, at least one.
    states: Vec<PlanState>,
    sequences: Arc<SequenceBuckets>,
    /// Tokens of a full sequence.
    full: usize,
    response: Response,
    class_offset: i32,
    /// For the response `detections`.
    decoder: Option<DetectionDecoder>,
}

impl Engine for Tract {
    fn max_batch(&self) -> usize {
        self.states.last().map_or(0, |state| state.batch_size)
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        let (size, max) = (batch.samples.len(), self.max_batch());
        let bucket = self.sequences.of_batch(batch.samples);
        let fits = |state: &&mut PlanState| state.bucket == bucket && state.batch_size >= size;
        let large_enough = self.states.iter_mut().find(fits);
        let Some(state) = large_enough.filter(|_| size > 0) else {
            return Err(EngineError::BatchSize { size, max });
        };
        let outputs = state.run(batch)?;
        let rows = state.batch_size;
        if let Some(decoder) = &mut self.decoder {
            for (place, &sample) in batch.samples.iter().enumerate() {
                let row = |output: usize| row_of(&outputs[output], rows, place);
                decoder.push(sample, row, answers);
            }
            return Ok(());
        }
        if self.sequences.are_several() {
            for (place, &sample) in batch.samples.iter().enumerate() {
                let rows = outputs
                    .iter()
                    .map(|output| (row_of(output, rows, place), output.datum_type().size_of()));
                let tokens = self.sequences.tokens(sample, self.full);
                answers.push_stacked_sequence(rows, tokens, self.full);
            }
            return Ok(());
        }
        let pushed = match self.response {
            Response::ArgmaxInt32 => push_classes(&outputs[0], rows, size, self.class_offset, answers),
            response => {
                push_tensors(&outputs, rows, size, response, answers);
                Ok(())
            }
        };
        pushed.map_err(|source| EngineError::Compute {
            engine: EngineKind::Tract,
            samples: size,
            source: source.into(),
        })
    }
}

/// Returns the row of a sample, of `rows` rows of an output.
fn row_of(output: &TValue, rows: usize, sample: usize) -> &[u8] {
    let bytes = output.as_bytes();
    let row = bytes.len() / rows;
    &bytes[sample * row..][..row]
}

/// Adds the first `count` of `rows` rows of the outputs, unchanged.
fn push_tensors(outputs: &[TValue], rows: usize, count: usize, response: Response, answers: &mut Answers) {
    if response == Response::Stacked {
        for sample in 0..count {
            let rows = outputs
                .iter()
                .map(|output| (row_of(output, rows, sample), output.datum_type().size_of()));
            answers.push_stacked(rows);
        }
        return;
    }
    if response == Response::AllOutputs {
        for sample in 0..count {
            answers.push_joined(outputs.iter().map(|output| row_of(output, rows, sample)));
        }
        return;
    }
    let bytes = outputs[0].as_bytes();
    bytes
        .chunks_exact((bytes.len() / rows).max(1))
        .take(count)
        .for_each(|row| answers.push(row));
}

/// Adds the classes of the first `count` of `rows` rows: the position of the largest score, or the class that the network computed.
fn push_classes(
    output: &TValue,
    rows: usize,
    count: usize,
    offset: i32,
    answers: &mut Answers,
) -> TractResult<()> {
    let mut push = |class: i32| answers.push(&class.saturating_add(offset).to_le_bytes());
    if output.len() == rows {
        // `check_output` has accepted integers only.
        let classes = output.cast_to::<i32>()?;
        let classes = classes.try_as_plain_ram()?.as_slice::<i32>()?;
        classes.iter().take(count).for_each(|&class| push(class));
        return Ok(());
    }
    let scores = output.cast_to::<f32>()?;
    let scores = scores.try_as_plain_ram()?.as_slice::<f32>()?;
    for row in scores.chunks_exact((scores.len() / rows).max(1)).take(count) {
        push(largest(row.iter().copied().map(f64::from)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stated_version_is_the_one_in_the_lock_file() {
        let lock = include_str!("../../../../Cargo.lock");
        let entry = format!("name = \"tract-onnx\"\nversion = \"{TRACT_VERSION}\"");
        assert!(lock.contains(&entry), "tract has been updated: set TRACT_VERSION");
    }
}
