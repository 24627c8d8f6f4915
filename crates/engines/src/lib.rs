//! Engines, which compute the answers: their common interface, the registry of the engines in this build, and how a model is loaded.
//!
//! An engine belongs to one thread at a time. It does not know LoadGen's scenarios, queues or logs.

mod answer_outputs;
mod backend;
mod builder;
pub mod chip;
#[cfg(test)]
mod conformance;
mod detections;
mod diffusion;
mod encoder_decoder;
mod engine;
mod error;
mod exchange;
mod fixed_batch;
mod host_network;
mod load;
mod load_request;
mod log_mel;
mod missing_engine;
mod model_file;
mod model_mismatch;
mod network;
mod network_loader;
mod network_loop;
mod null;
mod numbers;
#[cfg(feature = "onnxruntime")]
pub mod onnxruntime;
pub mod panics;
mod registry;
#[cfg(any(feature = "tract", feature = "onnxruntime"))]
mod sample_part;
mod sequences;
mod server;
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

pub use backend::{EngineBackend, EnginePlan, EngineRequest};
pub use builder::EngineBuilder;
use detections::DetectionDecoder;
pub use engine::{Description, Engine, FirstTokens, Loaded};
pub use error::EngineError;
pub use exchange::{Answers, Batch, Input};
pub use load::load;
pub use load_request::LoadRequest;
pub use missing_engine::{MissingDlaEngine, MissingEngine};
pub use model_mismatch::ModelMismatch;
pub use network_loop::NetworkLoop;
pub use registry::{configure, kinds};
pub use sequences::SequenceBuckets;
pub use server::ModelServer;

/// Tests count allocations.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: regatta_test_support::counting_allocator::CountingAllocator =
    regatta_test_support::counting_allocator::CountingAllocator;
