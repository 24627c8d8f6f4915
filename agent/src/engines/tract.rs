//! The `tract` engine: ONNX on the CPU, in pure Rust. Each stream computes on its own calling thread and on no other.
//!
//! tract is quick when shapes are fixed, so there is one plan per batch size that the run will use, made when the model
//! is loaded; a batch of another size takes the next larger plan and leaves its last rows unused. It neither quantises
//! nor converts, but for integers that become wider: otherwise the model's input has the samples' type or is refused.

mod model;

use std::{
    error::Error,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use regatta_types::{benchmark::Response, documents::EngineKind};
use tract_onnx::prelude::{TVec, Tensor, TypedSimpleState};
use tract_onnx::tract_core::value::{IntoTValue, TValue};

use self::model::Plan;
use super::{
    Answers, Batch, Description, Engine, EngineError, LoadRequest, Loaded,
    numbers::{largest, widen},
};
use crate::panics::panic_text;

/// The version of tract in this build. A test holds it against the lock file.
const TRACT_VERSION: &str = "0.23.9";

/// Loads the model once, and makes an engine over its plans for each stream.
pub(super) fn load(request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
    // tract checks much with assertions: a strange model must not take the process with it.
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
            Ok(Box::new(Tract {
                states,
                response: request.benchmark.model.response,
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

/// A stream's own state of a plan, with input tensors that are filled again and again.
struct PlanState {
    batch_size: usize,
    sample_bytes: usize,
    state: TypedSimpleState,
    inputs: Vec<StateInput>,
}

/// One input's tensor.
struct StateInput {
    /// What of a sample goes into it.
    part: Range<usize>,
    is_widened: bool,
    tensor: Arc<Tensor>,
}

impl StateInput {
    fn fill(&mut self, batch: &Batch<'_>, sample_bytes: usize) -> Result<(), EngineError> {
        if Arc::get_mut(&mut self.tensor).is_none() {
            // A plan may hand its input on as its output: whoever holds that keeps it, and we take a new one.
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
                part: input.part.clone(),
                is_widened: input.is_widened,
                tensor: Arc::new(input.tensor(plan.batch_size)?),
            })
        });
        Ok(Self {
            batch_size: plan.batch_size,
            sample_bytes: plan.sample_bytes,
            state,
            inputs: inputs.collect::<Result<_, _>>().map_err(refused)?,
        })
    }

    /// Runs the plan over the batch and returns its outputs, at least one.
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
    /// By ascending batch size, at least one.
    states: Vec<PlanState>,
    response: Response,
}

impl Engine for Tract {
    fn max_batch(&self) -> usize {
        self.states.last().map_or(0, |state| state.batch_size)
    }

    fn infer(&mut self, batch: &Batch<'_>, answers: &mut Answers) -> Result<(), EngineError> {
        let (given, max) = (batch.samples.len(), self.max_batch());
        let fitting = self.states.iter_mut().find(|state| state.batch_size >= given);
        let Some(state) = fitting.filter(|_| given > 0) else {
            return Err(EngineError::BatchSize { given, max });
        };
        let outputs = state.run(batch)?;
        let rows = state.batch_size;
        push_answers(&outputs, rows, given, self.response, answers).map_err(|source| EngineError::Compute {
            engine: EngineKind::Tract,
            samples: given,
            source,
        })
    }
}

/// Adds the answers of the first `wanted` of `rows` rows of the outputs.
fn push_answers(
    outputs: &[TValue],
    rows: usize,
    wanted: usize,
    response: Response,
    answers: &mut Answers,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let output = &outputs[0];
    match response {
        Response::Stacked => {
            for sample in 0..wanted {
                let rows = outputs.iter().map(|output| {
                    let bytes = output.as_bytes();
                    let row = bytes.len() / rows;
                    (&bytes[sample * row..][..row], output.datum_type().size_of())
                });
                answers.push_stacked(rows);
            }
        }
        Response::Raw => {
            let bytes = output.as_bytes();
            bytes
                .chunks_exact((bytes.len() / rows).max(1))
                .take(wanted)
                .for_each(|row| answers.push(row));
        }
        Response::ArgmaxInt32 => {
            let output = output.cast_to::<f32>()?;
            let values = output.try_as_plain_ram()?.as_slice::<f32>()?;
            for row in values.chunks_exact((values.len() / rows).max(1)).take(wanted) {
                let class = largest(row.iter().copied().map(f64::from));
                answers.push(&class.to_le_bytes());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stated_version_is_the_one_in_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        let entry = format!("name = \"tract-onnx\"\nversion = \"{TRACT_VERSION}\"");
        assert!(lock.contains(&entry), "tract has been updated: set TRACT_VERSION");
    }
}
