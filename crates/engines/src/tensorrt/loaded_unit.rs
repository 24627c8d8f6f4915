//! A unit of the machine with the engine that was selected for it. Executes nothing.

use std::{error::Error, sync::Arc};

use regatta_cuda::{Context, Stream};
use regatta_tensorrt::{CacheEntry, Engine as TrtEngine, TensorRt};
use regatta_types::documents::EngineKind;

use super::{
    choice, inputs,
    request::{TensorRtLoad, TensorRtRequest, Unit},
    tensors::Tensors,
};
use crate::EngineError;

#[derive(Debug, Clone, Copy)]
pub(super) struct StreamPlace {
    pub(super) unit: usize,
    /// Its number on the unit.
    pub(super) number: usize,
}

/// A unit with its loaded engine.
pub(super) struct LoadedUnit {
    pub(super) unit: Unit,
    /// The unit's GPU. For a DLA core, the GPU of the same chip.
    pub(super) context: Context,
    entry: CacheEntry,
    pub(super) engine: TrtEngine,
    /// The tensors at each length of sequences, at least one.
    pub(super) tensors: Vec<Tensors>,
    pub(super) streams: usize,
    /// Streams that several contexts share for computing. Empty if each context uses its own.
    inference: Vec<Arc<Stream>>,
}

impl LoadedUnit {
    /// Selects and loads the engine of a unit.
    ///
    /// # Errors
    /// [`EngineError`] when there is none, or it does not fit.
    pub(super) fn new(
        unit: Unit,
        request: TensorRtLoad<'_>,
        here: &choice::Here,
        tensorrt: &TensorRt,
        context: &Context,
    ) -> Result<Self, EngineError> {
        let unit_request = request.tensorrt.of(unit);
        let core = match unit {
            Unit::Gpu(_) => None,
            Unit::Dla(core) => Some(core),
        };
        inputs::check_request(request)?;
        let (entry, plan) = choice::choose(request, here, unit_request, core.is_some())?;
        let refused = |source: Box<dyn Error + Send + Sync>| EngineError::ModelRefused {
            engine: EngineKind::Tensorrt,
            file: request.load.model_file.clone(),
            source,
        };
        // TensorRT loads an engine for the current device of the thread.
        context.bind().map_err(EngineError::tensorrt_unavailable)?;
        let engine = tensorrt
            .load(&plan, core)
            .map_err(|error| refused(error.into()))?;
        // Without GPU fallback, DLA reads an input in its memory layout.
        let alone = entry.manifest.dla.is_some_and(|dla| !dla.gpu_fallback);
        let tensors = Tensors::at_each_length(&engine, request.load, alone)?;
        let profiles = engine.profiles();
        if tensors[0].shape_is_free && unit_request.streams * tensors.len() > profiles {
            return Err(choice::too_few_profiles(
                request,
                &entry,
                unit_request.streams,
                profiles / tensors.len(),
            ));
        }
        // With as many streams as contexts, or with 0, each context has its own.
        let shared = (1..unit_request.streams).contains(&unit_request.inference_streams);
        let inference = (0..if shared { unit_request.inference_streams } else { 0 })
            .map(|_| Stream::new(context).map(Arc::new))
            .collect::<Result<_, _>>()
            .map_err(EngineError::tensorrt_unavailable)?;
        Ok(Self {
            unit,
            context: context.clone(),
            entry,
            engine,
            tensors,
            streams: unit_request.streams,
            inference,
        })
    }

    /// Returns the first optimisation profile of a stream, by the stream's number on the unit.
    pub(super) fn profile(&self, number: usize) -> usize {
        if self.tensors[0].shape_is_free {
            number * self.tensors.len()
        } else {
            0
        }
    }

    /// Returns the stream that a context shares with others, if it shares one.
    pub(super) fn inference_stream(&self, number: usize) -> Option<Arc<Stream>> {
        (!self.inference.is_empty()).then(|| Arc::clone(&self.inference[number % self.inference.len()]))
    }

    /// Describes the unit and its engine.
    pub(super) fn describe(&self, request: &TensorRtRequest) -> String {
        let manifest = &self.entry.manifest;
        let lengths = match self.tensors.len() {
            1 => String::new(),
            several => format!(", {several} lengths"),
        };
        format!(
            "{}: engine {}, batch {}, {} stream(s){lengths}",
            request.name_of(self.unit),
            manifest.key(),
            manifest.batch,
            self.streams
        )
    }
}
