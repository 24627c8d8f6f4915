//! What computes the answers: the face that every engine shows to the harness, and the way to load one by name.
//!
//! An engine belongs to one thread at a time and knows nothing of LoadGen's scenarios, queues or logs.

#[cfg(test)]
pub(crate) mod conformance;
mod engine;
mod error;
mod exchange;
mod load_request;
mod model_file;
mod null;
mod numbers;
pub(crate) mod sim;
pub(crate) mod tensorrt;
#[cfg(feature = "tract")]
mod tract;

pub(crate) use engine::{Description, Engine, Loaded};
pub(crate) use error::EngineError;
pub(crate) use exchange::{Answers, Batch, Input};
pub(crate) use load_request::LoadRequest;
use regatta_types::documents::EngineKind;

/// Loads the engines that are asked for.
///
/// # Errors
/// [`EngineError`] when this build lacks the engine, or the model is missing, damaged, or does not fit the samples.
pub(crate) fn load(request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
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
