//! One network of a loop: an engine, with the inputs of all streams and the outputs of the streams that it has computed last. A stream's states
//! stay in its inputs from one computation to the next.

use std::ops::Range;

use regatta_loadgen::sut::{QuerySample, ResponseId};
use regatta_types::benchmark::{Benchmark, NetworkState};

use super::{Answers, Batch, Engine, EngineError, Input};

/// The bytes of a float.
pub(super) const FLOAT: usize = size_of::<f32>();

/// A network with memory for its inputs.
pub(super) struct Network {
    engine: Box<dyn Engine>,
    /// The bytes of a stream's inputs.
    row: usize,
    /// The states in a stream's inputs.
    states: Range<usize>,
    inputs: Vec<u8>,
    /// As many samples as a batch can have. The engine does not read them.
    samples: Vec<QuerySample>,
    outputs: Answers,
}

impl Network {
    /// Allocates the memory for `streams` streams, whose inputs are zeros. `benchmark` is the one that the engine was loaded with, and
    /// `states` its last inputs.
    pub(super) fn new(
        engine: Box<dyn Engine>,
        benchmark: &Benchmark,
        states: &[NetworkState],
        streams: usize,
    ) -> Self {
        let row = benchmark.model.sample_bytes().unwrap_or(0);
        let of_states: usize = states
            .iter()
            .map(|state| state.shape.iter().product::<usize>() * FLOAT)
            .sum();
        let blank = QuerySample {
            id: ResponseId(0),
            index: 0,
        };
        Self {
            samples: vec![blank; engine.max_batch().min(streams)],
            engine,
            row,
            states: row - of_states..row,
            inputs: vec![0; row * streams],
            outputs: Answers::default(),
        }
    }

    pub(super) fn engine(&self) -> &dyn Engine {
        self.engine.as_ref()
    }

    /// Returns a stream's inputs, one after the other.
    pub(super) fn inputs(&mut self, stream: usize) -> &mut [u8] {
        &mut self.inputs[stream * self.row..][..self.row]
    }

    /// Sets a stream's states to zero.
    pub(super) fn reset(&mut self, stream: usize) {
        let states = self.states.clone();
        self.inputs(stream)[states].fill(0);
    }

    /// Computes the streams in `streams`, and keeps their next states.
    pub(super) fn compute(&mut self, streams: &[usize]) -> Result<(), EngineError> {
        let states = self.states.clone();
        self.compute_and_update(streams, |_, inputs, output| {
            inputs[states.clone()].copy_from_slice(&output[output.len() - states.len()..]);
        })
    }

    /// Computes the streams in `streams`, and calls `update` with each stream, its inputs and its outputs.
    pub(super) fn compute_and_update(
        &mut self,
        streams: &[usize],
        mut update: impl FnMut(usize, &mut [u8], &[u8]),
    ) -> Result<(), EngineError> {
        self.outputs.clear();
        for slots in streams.chunks(self.samples.len()) {
            let batch = Batch {
                samples: &self.samples[..slots.len()],
                input: Input::Scattered {
                    arena: &self.inputs,
                    slots,
                },
            };
            self.engine.infer(&batch, &mut self.outputs)?;
        }
        for (&stream, output) in streams.iter().zip(self.outputs.iter()) {
            update(stream, &mut self.inputs[stream * self.row..][..self.row], output);
        }
        Ok(())
    }

    /// Returns the results of the streams that were computed last, without states, in the order of these streams.
    pub(super) fn results(&self) -> impl Iterator<Item = &[u8]> {
        let states = self.states.len();
        self.outputs
            .iter()
            .map(move |output| &output[..output.len() - states])
    }

    /// Reserves memory for results of `bytes` bytes of all streams.
    pub(super) fn reserve(&mut self, bytes: usize) {
        let streams = self.inputs.len() / self.row;
        self.outputs.clear();
        self.outputs.reserve(streams, bytes + self.states.len());
    }

    /// Computes one stream of zeros, which gives the engine its buffers, and returns the bytes of a result. `Err` with the number of found
    /// bytes when there are not enough for the states.
    pub(super) fn probe(&mut self) -> Result<Result<usize, usize>, EngineError> {
        self.outputs.clear();
        let batch = Batch {
            samples: &self.samples[..1],
            input: Input::Contiguous(&self.inputs[..self.row]),
        };
        self.engine.infer(&batch, &mut self.outputs)?;
        let found = self.outputs.iter().next().map_or(0, <[u8]>::len);
        Ok(found.checked_sub(self.states.len()).ok_or(found))
    }
}

/// Writes floats to the beginning of an input, and zeros behind them.
pub(super) fn put(to: &mut [u8], mut values: impl Iterator<Item = f32>) {
    for place in to.as_chunks_mut().0 {
        *place = values.next().unwrap_or(0.0).to_le_bytes();
    }
}
