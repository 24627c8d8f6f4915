//! Loads the networks of a loop: each is a file of the benchmark's model with separate inputs. Only computes a probe.

use std::{path::PathBuf, sync::Arc};

use regatta_types::benchmark::{Benchmark, Dtype, FurtherInput, NetworkState, Response};

use super::{
    Description, EngineError, LoadRequest, ModelMismatch,
    network::{FLOAT, KeptInput, KeptUpdate, Network, NetworkLayout},
};

/// Loads single networks on one kind of engine.
pub(super) trait NetworkSource {
    type Network: Network;

    /// Loads the network of a request, once for each stream of the request. `streams` is the number of streams in the other networks of the
    /// model, which this one must serve too; `None` for the first network.
    ///
    /// # Errors
    /// [`EngineError`] as that of [`super::load()`].
    fn load(
        &self,
        request: &LoadRequest<'_>,
        layout: &NetworkLayout<'_>,
        streams: Option<usize>,
    ) -> Result<(Description, Vec<Self::Network>), EngineError>;
}

/// Loads networks for a request.
pub(super) struct NetworkLoader<'a, S> {
    pub(super) request: &'a LoadRequest<'a>,
    pub(super) source: &'a S,
}

impl<S: NetworkSource> NetworkLoader<'_, S> {
    /// Returns the error that the model does not fit.
    pub(super) fn unfit(&self, reason: impl Into<ModelMismatch>) -> EngineError {
        EngineError::ModelUnfit {
            file: self.request.model_file.clone(),
            benchmark: self.request.benchmark.name.clone(),
            reason: reason.into(),
        }
    }

    /// Returns the place of a file of the model, by its number.
    pub(super) fn file(&self, number: usize) -> PathBuf {
        let files = self.request.benchmark.model.files();
        let name = files[number].rsplit('/').next().unwrap_or_default();
        self.request.model_file.with_file_name(name)
    }

    /// Loads the encoder, which is the first file of the model.
    pub(super) fn encoder(
        &self,
        layout: &NetworkLayout<'_>,
    ) -> Result<(Description, Vec<S::Network>), EngineError> {
        self.load(0, layout, self.request.batch_sizes, None)
    }

    /// Loads the network in file `number` of the model for `streams` streams, which end one by one.
    pub(super) fn decoder(
        &self,
        number: usize,
        layout: &NetworkLayout<'_>,
        streams: usize,
    ) -> Result<(Description, Vec<S::Network>), EngineError> {
        self.load(number, layout, &decoder_batch_sizes(streams), Some(streams))
    }

    /// Loads the network in file `number` of the model for `streams` streams, which are computed together from beginning to end.
    pub(super) fn load_in_lockstep(
        &self,
        number: usize,
        layout: &NetworkLayout<'_>,
        streams: usize,
    ) -> Result<(Description, Vec<S::Network>), EngineError> {
        let requested = self.request.batch_sizes.iter().copied();
        let sizes: Vec<usize> = requested
            .filter(|&size| size < streams)
            .chain([streams])
            .collect();
        self.load(number, layout, &sizes, Some(streams))
    }

    fn load(
        &self,
        number: usize,
        layout: &NetworkLayout<'_>,
        batch_sizes: &[usize],
        streams: Option<usize>,
    ) -> Result<(Description, Vec<S::Network>), EngineError> {
        let file = self.request.benchmark.model.files().swap_remove(number);
        let benchmark = description(self.request.benchmark, file, layout);
        let request = LoadRequest {
            benchmark: &benchmark,
            image_sizes: Arc::default(),
            volumes: Arc::default(),
            sequences: Arc::default(),
            model_file: self.file(number),
            batch_sizes,
            ..*self.request
        };
        self.source.load(&request, layout, streams)
    }

    /// Computes zeros with each of the networks, which gives their engines their buffers, reserves memory for results, and returns the floats in
    /// a result. They are a multiple of `steps`, and not none.
    pub(super) fn probe(
        &self,
        networks: &mut [S::Network],
        steps: usize,
        what: &str,
    ) -> Result<usize, EngineError> {
        let mut found = Ok(0);
        for network in &mut *networks {
            found = network.probe()?;
        }
        let whole = found
            .ok()
            .filter(|bytes| *bytes > 0 && bytes.is_multiple_of(steps * FLOAT));
        let bytes = whole.ok_or_else(|| {
            self.unfit(format!(
                "the result of its {what} is not float32 with {steps} steps, or is not followed by its states"
            ))
        })?;
        networks.iter_mut().for_each(|network| network.reserve(bytes));
        Ok(bytes / FLOAT)
    }

    /// Checks the number of values that a probe has found.
    pub(super) fn check_values(&self, what: &str, found: usize, needed: usize) -> Result<(), EngineError> {
        if found == needed {
            return Ok(());
        }
        Err(self.unfit(format!("its {what} has {found} values, but {needed} are needed")))
    }
}

/// Returns the description of a network of the benchmark's model with these inputs. Its samples have all inputs, and its answers all outputs.
fn description(benchmark: &Benchmark, file: String, layout: &NetworkLayout<'_>) -> Benchmark {
    let mut benchmark = benchmark.clone();
    let model = &mut benchmark.model;
    if file != model.file {
        model.sha256 = None;
    }
    model.file = file;
    model.transducer = None;
    model.encoder_decoder = None;
    model.diffusion = None;
    model.response = Response::AllOutputs;
    model.outputs.clear();
    let kept = layout.kept.iter().map(|kept| kept.input.clone());
    model.further_inputs = layout.written.iter().cloned().chain(kept).collect();
    let first = model.further_inputs.remove(0);
    model.input_name = Some(first.name);
    model.input_shape = first.shape;
    model.input_dtype = first.dtype;
    benchmark
}

/// Returns the description of a model's engines: that of the first network, with those of the others. What they share is said once.
pub(super) fn joined<const N: usize>(first: Description, others: [Description; N]) -> Description {
    let mut places = vec![first.runs_on.clone()];
    places.extend(others.into_iter().map(|other| other.runs_on));
    places.dedup();
    Description {
        runs_on: places.join("; "),
        ..first
    }
}

/// Returns an input of float32.
pub(super) fn float_input(name: &str, shape: Vec<usize>) -> FurtherInput {
    FurtherInput {
        name: name.to_owned(),
        shape,
        dtype: Dtype::Float32,
    }
}

/// Returns an input of one int32.
pub(super) fn integer(name: &str) -> FurtherInput {
    int_input(name, Vec::new())
}

/// Returns an input of int32.
pub(super) fn int_input(name: &str, shape: Vec<usize>) -> FurtherInput {
    FurtherInput {
        name: name.to_owned(),
        shape,
        dtype: Dtype::Int32,
    }
}

pub(super) fn kept(name: &str, shape: Vec<usize>, update: KeptUpdate) -> KeptInput {
    KeptInput {
        input: float_input(name, shape),
        update,
    }
}

/// Returns the states of a benchmark's file as kept inputs.
pub(super) fn states(states: &[NetworkState]) -> Vec<KeptInput> {
    states
        .iter()
        .map(|state| kept(&state.name, state.shape.clone(), KeptUpdate::Whole))
        .collect()
}

/// Returns the sizes of batches at which a decoder must be fast, up to `most`. Streams end one by one.
fn decoder_batch_sizes(most: usize) -> Vec<usize> {
    std::iter::successors(Some(1), |size| Some(size * 2))
        .take_while(|&size| size < most)
        .chain([most])
        .collect()
}
