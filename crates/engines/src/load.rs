//! Loads the model of a run: one network, a network for windows, or networks in a loop. Engines that are missing are built first, if there is a
//! builder.

use regatta_types::documents::EngineKind;

use super::{
    EngineBackend, EngineBuilder, EngineError, LoadRequest, Loaded, network_loop::NetworkLoop, windows,
};

/// Loads the requested engines. With a `builder`, engines that must be built and are missing are built first, unless the settings forbid it.
///
/// # Errors
/// [`EngineError`] when the model is missing, damaged, or does not match the samples, or a build fails.
pub fn load(
    backend: &dyn EngineBackend,
    request: &LoadRequest<'_>,
    mut builder: Option<&mut EngineBuilder<'_>>,
) -> Result<Loaded, EngineError> {
    loop {
        // A failed load has released the device's memory, which a build needs.
        let failure = match load_built(backend, request) {
            Ok(loaded) => return Ok(loaded),
            Err(failure) => failure,
        };
        let is_built = match builder.as_deref_mut() {
            Some(builder) => backend.build_if_missing(&failure, builder)?,
            None => false,
        };
        if !is_built {
            return Err(failure);
        }
    }
}

fn load_built(backend: &dyn EngineBackend, request: &LoadRequest<'_>) -> Result<Loaded, EngineError> {
    let model = &request.benchmark.model;
    // A model server has its own requirements, but computes windows as other engines do.
    if !backend.kind().computes() || (backend.kind() == EngineKind::Server && model.windows.is_none()) {
        return backend.load(request);
    }
    if !model.is_computed_by(backend.kind()) {
        return Err(EngineError::NoResponses {
            benchmark: request.benchmark.name.clone(),
        });
    }
    if let Some(sliding) = &model.windows {
        return windows::load(request, sliding, backend.window_layout(), |of_windows| {
            backend.load(of_windows)
        });
    }
    match NetworkLoop::of(model) {
        Some(network_loop) => backend.load_loop(request, &network_loop),
        None => backend.load(request),
    }
}
