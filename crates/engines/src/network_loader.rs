//! Loads the networks of a loop: each is a file of the benchmark's model with inputs of its own. Computes nothing but a probe.

use std::{path::PathBuf, sync::Arc};

use regatta_types::benchmark::{Benchmark, Dtype, FurtherInput, NetworkState, Response};

use super::{
    Description, Engine, EngineError, LoadRequest, Loaded,
    network::{FLOAT, Network},
};

/// Loads networks for a request.
pub(super) struct NetworkLoader<'a, F> {
    pub(super) request: &'a LoadRequest<'a>,
    /// Loads the engines of one network.
    pub(super) load: F,
}

/// The inputs of a network.
pub(super) struct NetworkInputs<'a> {
    /// Those before the states.
    pub(super) inputs: &'a [FurtherInput],
    /// The states that it keeps from one computation to the next.
    pub(super) states: &'a [NetworkState],
}

impl<F: Fn(&LoadRequest<'_>) -> Result<Loaded, EngineError>> NetworkLoader<'_, F> {
    /// Returns the error that the model does not fit.
    pub(super) fn unfit(&self, reason: String) -> EngineError {
        EngineError::ModelUnfit {
            file: self.request.model_file.clone(),
            benchmark: self.request.benchmark.name.clone(),
            reason,
        }
    }

    /// Returns the place of a file of the model, by its number.
    pub(super) fn file(&self, number: usize) -> PathBuf {
        let files = self.request.benchmark.model.files();
        let name = files[number].rsplit('/').next().unwrap_or_default();
        self.request.model_file.with_file_name(name)
    }

    /// Loads the network in file `number` of the model, for each stream of the request.
    pub(super) fn network(
        &self,
        number: usize,
        of: &NetworkInputs<'_>,
        batch_sizes: &[usize],
    ) -> Result<(Description, Vec<Network>), EngineError> {
        let file = self.request.benchmark.model.files().swap_remove(number);
        let benchmark = description(self.request.benchmark, file, of);
        let loaded = (self.load)(&LoadRequest {
            benchmark: &benchmark,
            image_sizes: Arc::default(),
            volumes: Arc::default(),
            sequences: Arc::default(),
            model_file: self.file(number),
            batch_sizes,
            ..*self.request
        })?;
        let most = batch_sizes.iter().copied().max().unwrap_or(1);
        let network = |engine: Box<dyn Engine>| {
            let streams = most.max(engine.max_batch());
            Network::new(engine, &benchmark, of.states, streams)
        };
        let networks = loaded.engines.into_iter().map(network).collect();
        Ok((loaded.description, networks))
    }

    /// Computes zeros with the first of the networks, which gives its engine its buffers, reserves memory for results, and returns the floats in
    /// a result, without states. They are a multiple of `steps`, and not none.
    pub(super) fn probe(
        &self,
        networks: &mut [Network],
        steps: usize,
        what: &str,
    ) -> Result<usize, EngineError> {
        let found = networks.first_mut().map_or(Ok(Ok(0)), Network::probe)?;
        let whole = found
            .ok()
            .filter(|bytes| *bytes > 0 && bytes.is_multiple_of(steps * FLOAT));
        let bytes = whole.ok_or_else(|| {
            self.unfit(format!(
                "the result of its {what} is no float32 of {steps} steps, or its states do not follow it"
            ))
        })?;
        networks.iter_mut().for_each(|network| network.reserve(bytes));
        Ok(bytes / FLOAT)
    }
}

/// Returns the description of a network of the benchmark's model with these inputs. Its samples have all inputs, and its answers all outputs.
fn description(benchmark: &Benchmark, file: String, of: &NetworkInputs<'_>) -> Benchmark {
    let mut benchmark = benchmark.clone();
    let model = &mut benchmark.model;
    if file != model.file {
        model.sha256 = None;
    }
    model.file = file;
    model.transducer = None;
    model.encoder_decoder = None;
    model.response = Response::AllOutputs;
    let states = of
        .states
        .iter()
        .map(|state| floats(&state.name, state.shape.clone()));
    model.further_inputs = of.inputs.iter().cloned().chain(states).collect();
    let first = model.further_inputs.remove(0);
    model.input_name = Some(first.name);
    model.input_shape = first.shape;
    model.input_dtype = first.dtype;
    benchmark
}

/// Returns an input of float32.
pub(super) fn floats(name: &str, shape: Vec<usize>) -> FurtherInput {
    FurtherInput {
        name: name.to_owned(),
        shape,
        dtype: Dtype::Float32,
    }
}

/// Returns an input of one int32.
pub(super) fn integer(name: &str) -> FurtherInput {
    FurtherInput {
        name: name.to_owned(),
        shape: Vec::new(),
        dtype: Dtype::Int32,
    }
}

/// Returns the sizes of batches at which a decoder must be fast, up to `most`. Streams end one by one.
pub(super) fn decoder_batch_sizes(most: usize) -> Vec<usize> {
    std::iter::successors(Some(1), |size| Some(size * 2))
        .take_while(|&size| size < most)
        .chain([most])
        .collect()
}
