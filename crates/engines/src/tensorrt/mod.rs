//! The `tensorrt` engine: runs engines from `engine build` on GPUs and DLA cores at once.
//!
//! Each stream is an execution context with its own memory (`runner`). Streams of a unit overlap their copies and
//! take turns on the unit. The run's request is a [`TensorRtRequest`], made in `settings`, and `choice` selects the engine from the cache.
//! A model of several networks has an engine for each (`network_source`). This module does not build engines. The benchmark's model files only
//! identify the engine by their hash.

mod build_options;
pub mod calibration;
mod choice;
pub(crate) mod convert;
mod dla_cores;
mod gpus;
mod graphs;
mod inputs;
mod installation;
mod kept_memory;
mod length_context;
mod loaded_unit;
mod lost_device;
mod machine;
mod memory;
mod network;
mod network_setup;
mod network_source;
mod network_tensors;
mod profiles;
mod request;
mod runner;
mod samples;
mod sequences;
mod settings;
mod tensors;
mod workspace;
mod written_input;

use std::sync::Arc;

use regatta_types::{documents::EngineKind, layout::Layout};

pub use self::{
    build_options::BuildOptions,
    installation::Installation,
    request::{Graphs, TensorRtRequest, UnitRequest},
    samples::SharedSamples,
    settings::{ENGINES, calibration_path, engine_cache, plugin_libraries},
    workspace::bounded_workspace,
};
use self::{
    loaded_unit::{LoadedUnit, StreamPlace},
    machine::Machine,
    network_source::DeviceNetworks,
    request::{TensorRtLoad, Unit},
    runner::{Runner, Setup},
};
use super::{
    Engine, EngineBackend, EngineBuilder, EngineError, EnginePlan, EngineRequest, LoadRequest, Loaded,
    NetworkLoop,
};

/// The `tensorrt` engine with the settings of a run.
pub struct TensorRtBackend {
    request: TensorRtRequest,
}

impl TensorRtBackend {
    /// Returns the engine for a request that names its GPUs.
    pub const fn new(request: TensorRtRequest) -> Self {
        Self { request }
    }

    const fn with<'a>(&'a self, load: &'a LoadRequest<'a>) -> TensorRtLoad<'a> {
        TensorRtLoad {
            load,
            tensorrt: &self.request,
        }
    }
}

impl EngineBackend for TensorRtBackend {
    fn configure(request: &EngineRequest<'_>) -> Result<Self, EngineError> {
        let mut request = settings::request(request);
        dla_cores::limit(&mut request)?;
        request.on_this_machine().map(Self::new)
    }

    fn kind(&self) -> EngineKind {
        EngineKind::Tensorrt
    }

    fn plan(&self) -> EnginePlan {
        let request = &self.request;
        EnginePlan {
            streams: request.streams().max(1),
            units: request.unit_count(),
            requested_batch: request.batch(),
            offline_batch: None,
            window_batch: request.gpu.batch.unwrap_or(1),
            answers_at_once: false,
        }
    }

    fn window_layout(&self) -> Layout {
        self.request.input_format.unwrap_or_default()
    }

    /// A named engine would not be the one that is built.
    fn build_if_missing(
        &self,
        failure: &EngineError,
        builder: &mut EngineBuilder<'_>,
    ) -> Result<bool, EngineError> {
        let request = &self.request;
        let names_engine = request.gpu.engine.is_some() || request.dla.engine.is_some();
        match failure {
            EngineError::NotBuilt { missing, .. } if request.builds_missing && !names_engine => {
                builder.build(missing)
            }
            _ => Ok(false),
        }
    }

    /// Opens CUDA and TensorRT, loads the selected engines, and creates a runner for each stream. The runners are in
    /// rounds: first one per unit, then the second streams, and so on.
    fn load(&self, request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
        let machine = Machine::open(&self.request)?;
        let shared = machine
            .is_direct(&self.request)
            .then(|| Arc::new(SharedSamples::new(machine.first())));
        let request = self.with(request);
        let units = machine.units(request)?;
        let engines = machine.streams(&units, &self.request, |unit, place| {
            let setup = setup(unit, request, place, shared.clone());
            let runner = Runner::new(&unit.context, &unit.engine, setup)?;
            Ok(Box::new(runner) as Box<dyn Engine>)
        });
        Ok(Loaded {
            description: machine.describe(&self.request, &units),
            engines: engines?,
            shared,
        })
    }

    fn load_loop(
        &self,
        request: &LoadRequest<'_>,
        network_loop: &NetworkLoop<'_>,
    ) -> Result<Loaded, EngineError> {
        network_loop.load(request, &DeviceNetworks::open(&self.request)?)
    }
}

fn setup(
    unit: &LoadedUnit,
    TensorRtLoad { load, tensorrt }: TensorRtLoad<'_>,
    place: StreamPlace,
    shared: Option<Arc<SharedSamples>>,
) -> Setup {
    let on_gpu = matches!(unit.unit, Unit::Gpu(_));
    Setup {
        unit: place.unit,
        unit_name: tensorrt.name_of(unit.unit),
        tensors: unit.tensors.clone(),
        profile: unit.profile(place.number),
        sequences: Arc::clone(&load.sequences),
        loops: if on_gpu { 1 } else { tensorrt.dla_loops.max(1) },
        requested_batch: tensorrt.of(unit.unit).batch,
        inference: unit.inference_stream(place.number),
        graphs: if on_gpu { tensorrt.graphs } else { Graphs::Never },
        graph_sizes: load.batch_sizes.to_vec(),
        shared,
        wait: tensorrt.wait,
        response: load.benchmark.model.response,
        class_offset: load.benchmark.model.class_offset,
    }
}
