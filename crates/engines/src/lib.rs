//! Engines, which compute the answers: their common interface, and the function that loads one by kind.
//!
//! An engine belongs to one thread at a time. It does not know LoadGen's scenarios, queues or logs.

pub mod chip;
#[cfg(test)]
mod conformance;
mod detections;
mod encoder_decoder;
mod engine;
mod error;
mod exchange;
mod host_network;
mod load_request;
mod log_mel;
mod model_file;
mod network;
mod network_loader;
pub mod npy_header;
mod null;
mod numbers;
pub mod panics;
mod sequences;
pub mod sim;
#[cfg(any(test, feature = "subjects"))]
#[expect(
    clippy::unwrap_used,
    reason = "what cannot be set up fails the test that wanted it"
)]
pub mod subjects;
pub mod tensorrt;
#[cfg(feature = "tract")]
mod tract;
mod transducer;
mod waveform;
mod windows;

use detections::DetectionDecoder;
pub use engine::{Description, Engine, Loaded};
pub use error::EngineError;
pub use exchange::{Answers, Batch, Input};
use host_network::HostNetworks;
pub use load_request::LoadRequest;
use regatta_types::documents::EngineKind;
pub use sequences::SequenceBuckets;

/// Tests count allocations.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: regatta_test_support::counting_allocator::CountingAllocator =
    regatta_test_support::counting_allocator::CountingAllocator;

/// Loads the requested engines.
///
/// # Errors
/// [`EngineError`] when this build lacks the engine, or the model is missing, damaged, or does not match the samples.
pub fn load(request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
    let model = &request.benchmark.model;
    if request.kind.computes() && !model.has_engine() {
        return Err(EngineError::NoResponses {
            benchmark: request.benchmark.name.clone(),
        });
    }
    if !request.kind.computes() {
        return load_kind(request);
    }
    match (&model.windows, &model.transducer, &model.encoder_decoder) {
        (Some(windows), ..) => windows::load(request, windows, load_kind),
        (_, Some(transducer), _) if request.kind == EngineKind::Tensorrt => {
            transducer::load(request, transducer, &tensorrt::networks(request)?)
        }
        (_, Some(transducer), _) => transducer::load(request, transducer, &HostNetworks { load: load_kind }),
        (_, _, Some(networks)) if request.kind == EngineKind::Tensorrt => {
            encoder_decoder::load(request, networks, &tensorrt::networks(request)?)
        }
        (_, _, Some(networks)) => encoder_decoder::load(request, networks, &HostNetworks { load: load_kind }),
        _ => load_kind(request),
    }
}

fn load_kind(request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
    match request.kind {
        EngineKind::Null => Ok(null::load(request)),
        EngineKind::Sim => Ok(sim::load(request)),
        #[cfg(feature = "tract")]
        EngineKind::Tract => tract::load(request),
        #[cfg(not(feature = "tract"))]
        EngineKind::Tract => Err(EngineError::NotBuiltIn {
            engine: request.kind,
            instead: "null, tensorrt, sim",
        }),
        EngineKind::Tensorrt => tensorrt::load(request),
    }
}
