//! The `tensorrt` engine: runs engines from `engine build` on GPUs and DLA cores at once.
//!
//! Each stream is an execution context with its own memory ([`Runner`]). Streams of a unit overlap their copies and
//! take turns on the unit. The run's request is an [`EngineRequest`], and [`choice`] selects the engine from the cache.
//! This module does not build engines. The benchmark's model files only identify the engine by their hash.

mod build_command;
pub mod calibration;
mod choice;
mod convert;
mod engine_request;
mod gpus;
mod graphs;
mod inputs;
mod length_context;
mod memory;
mod profiles;
mod runner;
mod samples;
mod sequences;
mod tensors;

use std::{error::Error, iter, sync::Arc};

use regatta_cuda::{Context, Stream};
use regatta_tensorrt::{CacheEntry, Engine as TrtEngine, Model, TensorRt, plugin_hashes};
use regatta_types::documents::EngineKind;

pub use self::{
    build_command::BuildCommand,
    engine_request::{EngineRequest, Graphs, Installation, UnitRequest},
    samples::SharedSamples,
};
use self::{
    engine_request::Unit,
    runner::{Runner, Setup},
    tensors::Tensors,
};
use super::{Description, Engine, EngineError, LoadRequest, Loaded, model_file};
use crate::chip::chip;

/// Opens CUDA and TensorRT, loads the selected engines, and creates a runner for each stream. The runners are in
/// rounds: first one per unit, then the second streams, and so on.
pub(super) fn load(request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
    let engine_request = request.tensorrt;
    let contexts = gpus::open(&engine_request.gpus, &engine_request.installation.driver()?)?;
    let tensorrt = engine_request.installation.tensorrt()?;
    for plugins in &engine_request.plugins {
        let loaded = tensorrt.load_plugins(plugins);
        loaded.map_err(EngineError::tensorrt_unavailable)?;
    }
    let first = &contexts[0];
    let here = choice::Here {
        onnx_sha256: onnx_sha256(request)?,
        calibration: engine_request
            .calibration
            .as_deref()
            .map(calibration::sha256_of)
            .transpose()
            .map_err(EngineError::calibration)?,
        plugins: plugin_hashes(&engine_request.plugins).map_err(EngineError::tensorrt_unavailable)?,
        tensorrt: tensorrt.version(),
        chip: chip(Some(first.device())),
    };
    let direct = engine_request
        .direct_host_access
        .unwrap_or(first.device().integrated);
    let shared = direct.then(|| Arc::new(SharedSamples::new(first)));
    // DLA cores belong to the chip of the first GPU.
    let of_gpus = contexts.iter().chain(iter::repeat(first));
    let units: Vec<LoadedUnit> = engine_request
        .units()
        .into_iter()
        .zip(of_gpus)
        .map(|(unit, context)| LoadedUnit::new(unit, request, &here, &tensorrt, context))
        .collect::<Result<_, _>>()?;
    let most = units.iter().map(|unit| unit.streams).max().unwrap_or(0);
    let mut engines: Vec<Box<dyn Engine>> = Vec::new();
    for number in 0..most {
        for (position, unit) in units.iter().enumerate().filter(|(_, unit)| number < unit.streams) {
            let setup = unit.setup(request, position, number, shared.clone());
            let runner = Runner::new(&unit.context, &unit.engine, setup);
            let failed = |source| EngineError::Stream {
                stream: number + 1,
                unit: engine_request.name_of(unit.unit),
                needed: unit.engine.context_bytes(),
                free: unit.context.memory().map_or(0, |(free, _)| free as u64),
                source,
            };
            engines.push(Box::new(runner.map_err(failed)?));
        }
    }
    Ok(Loaded {
        description: describe(engine_request, &tensorrt, &contexts, &units, shared.is_some()),
        engines,
        shared,
    })
}

/// Returns the hash that identifies the model in manifests. It covers the benchmark's file and the weight files that it
/// names.
fn onnx_sha256(request: &LoadRequest<'_>) -> Result<String, EngineError> {
    let own = model_file::checked_hash(request)?;
    let known = Model::read(&request.model_file).and_then(|model| model.sha256_with(own));
    known.map_err(|error| EngineError::ModelRefused {
        engine: EngineKind::Tensorrt,
        file: request.model_file.clone(),
        source: error.into(),
    })
}

/// A unit with its loaded engine.
struct LoadedUnit {
    unit: Unit,
    /// The unit's GPU. For a DLA core, the GPU of the same chip.
    context: Context,
    entry: CacheEntry,
    engine: TrtEngine,
    /// The tensors at each length of sequences, at least one.
    tensors: Vec<Tensors>,
    streams: usize,
    /// Streams that several contexts share for computing. Empty if each context uses its own.
    inference: Vec<Arc<Stream>>,
}

impl LoadedUnit {
    fn new(
        unit: Unit,
        request: &LoadRequest<'_>,
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
            file: request.model_file.clone(),
            source,
        };
        // TensorRT loads an engine for the current device of the thread.
        context.bind().map_err(EngineError::tensorrt_unavailable)?;
        let engine = tensorrt
            .load(&plan, core)
            .map_err(|error| refused(error.into()))?;
        // Without GPU fallback, DLA reads an input in its memory layout.
        let alone = entry.manifest.dla.is_some_and(|dla| !dla.gpu_fallback);
        let tensors = Tensors::at_each_length(&engine, request, alone)?;
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

    fn setup(
        &self,
        request: &LoadRequest<'_>,
        position: usize,
        number: usize,
        shared: Option<Arc<SharedSamples>>,
    ) -> Setup {
        let engine_request = request.tensorrt;
        let on_gpu = matches!(self.unit, Unit::Gpu(_));
        Setup {
            unit: position,
            unit_name: engine_request.name_of(self.unit),
            tensors: self.tensors.clone(),
            profile: if self.tensors[0].shape_is_free {
                number * self.tensors.len()
            } else {
                0
            },
            sequences: Arc::clone(&request.sequences),
            loops: if on_gpu {
                1
            } else {
                engine_request.dla_loops.max(1)
            },
            requested_batch: engine_request.of(self.unit).batch,
            inference: (!self.inference.is_empty())
                .then(|| Arc::clone(&self.inference[number % self.inference.len()])),
            graphs: if on_gpu {
                engine_request.graphs
            } else {
                Graphs::Never
            },
            graph_sizes: request.batch_sizes.to_vec(),
            shared,
            wait: engine_request.wait,
            response: request.benchmark.model.response,
            class_offset: request.benchmark.model.class_offset,
        }
    }
}

fn describe(
    engine_request: &EngineRequest,
    tensorrt: &TensorRt,
    contexts: &[Context],
    units: &[LoadedUnit],
    direct: bool,
) -> Description {
    let descriptions = units.iter().map(|unit| {
        let manifest = &unit.entry.manifest;
        let lengths = match unit.tensors.len() {
            1 => String::new(),
            several => format!(", {several} lengths"),
        };
        format!(
            "{}: engine {}, batch {}, {} stream(s){lengths}",
            engine_request.name_of(unit.unit),
            manifest.key(),
            manifest.batch,
            unit.streams
        )
    });
    let driver = contexts[0].driver().version();
    let access = if direct { "in host memory" } else { "by copies" };
    Description {
        kind: EngineKind::Tensorrt,
        version: tensorrt.version().to_string(),
        runs_on: format!(
            "{} (CUDA {}.{}, {access}; {})",
            gpus::in_words(contexts),
            driver / 1000,
            driver % 1000 / 10,
            descriptions.collect::<Vec<_>>().join("; ")
        ),
    }
}
