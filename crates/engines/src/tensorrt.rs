//! The `tensorrt` engine: runs engines from `engine build` on GPUs and DLA cores at once.
//!
//! Each stream is an execution context with its own memory (`runner`). Streams of a unit overlap their copies and
//! take turns on the unit. The run's request is an [`EngineRequest`], and `choice` selects the engine from the cache.
//! A model of several networks has an engine for each (`network_source`). This module does not build engines. The benchmark's model files only
//! identify the engine by their hash.

mod build_command;
pub mod calibration;
mod choice;
mod convert;
mod engine_request;
mod gpus;
mod graphs;
mod inputs;
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
mod runner;
mod samples;
mod sequences;
mod tensors;
mod written_input;

use std::sync::Arc;

pub(crate) use self::network_source::networks;
pub use self::{
    build_command::BuildCommand,
    engine_request::{EngineRequest, Graphs, Installation, UnitRequest},
    samples::SharedSamples,
};
use self::{
    engine_request::Unit,
    loaded_unit::{LoadedUnit, StreamPlace},
    machine::Machine,
    runner::{Runner, Setup},
};
use super::{Engine, EngineError, LoadRequest, Loaded};

/// Opens CUDA and TensorRT, loads the selected engines, and creates a runner for each stream. The runners are in
/// rounds: first one per unit, then the second streams, and so on.
pub(super) fn load(request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
    let engine_request = request.tensorrt;
    let machine = Machine::open(engine_request)?;
    let shared = machine
        .is_direct(engine_request)
        .then(|| Arc::new(SharedSamples::new(machine.first())));
    let units = machine.units(request)?;
    let engines = machine.streams(&units, engine_request, |unit, place| {
        let setup = setup(unit, request, place, shared.clone());
        let runner = Runner::new(&unit.context, &unit.engine, setup)?;
        Ok(Box::new(runner) as Box<dyn Engine>)
    });
    Ok(Loaded {
        description: machine.describe(engine_request, &units),
        engines: engines?,
        shared,
    })
}

fn setup(
    unit: &LoadedUnit,
    request: &LoadRequest<'_>,
    place: StreamPlace,
    shared: Option<Arc<SharedSamples>>,
) -> Setup {
    let engine_request = request.tensorrt;
    let on_gpu = matches!(unit.unit, Unit::Gpu(_));
    Setup {
        unit: place.unit,
        unit_name: engine_request.name_of(unit.unit),
        tensors: unit.tensors.clone(),
        profile: unit.profile(place.number),
        sequences: Arc::clone(&request.sequences),
        loops: if on_gpu {
            1
        } else {
            engine_request.dla_loops.max(1)
        },
        requested_batch: engine_request.of(unit.unit).batch,
        inference: unit.inference_stream(place.number),
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
