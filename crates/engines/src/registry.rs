//! The engines of this build. A new engine is a directory with an [`EngineBackend`], and a line here.

use regatta_types::documents::EngineKind;

#[cfg(feature = "onnxruntime")]
use super::onnxruntime::OnnxRuntimeBackend;
#[cfg(feature = "tract")]
use super::tract::TractBackend;
use super::{
    EngineError,
    backend::{EngineBackend, EngineRequest},
    null::NullBackend,
    server::ServerBackend,
    sim::SimBackend,
    tensorrt::TensorRtBackend,
};

/// Applies the settings of a run to an engine.
type Configure = fn(&EngineRequest<'_>) -> Result<Box<dyn EngineBackend>, EngineError>;

/// The engines, in the order of [`EngineKind::ALL`].
const ENGINES: &[(EngineKind, Configure)] = &[
    (EngineKind::Null, configured::<NullBackend>),
    #[cfg(feature = "tract")]
    (EngineKind::Tract, configured::<TractBackend>),
    #[cfg(feature = "onnxruntime")]
    (EngineKind::Onnxruntime, configured::<OnnxRuntimeBackend>),
    (EngineKind::Tensorrt, configured::<TensorRtBackend>),
    (EngineKind::Server, configured::<ServerBackend>),
    (EngineKind::Sim, configured::<SimBackend>),
];

fn configured<B: EngineBackend + 'static>(
    request: &EngineRequest<'_>,
) -> Result<Box<dyn EngineBackend>, EngineError> {
    Ok(Box::new(B::configure(request)?))
}

/// Returns the kinds of engines in this build.
pub fn kinds() -> impl Iterator<Item = EngineKind> {
    ENGINES.iter().map(|&(kind, _)| kind)
}

/// Returns an engine with the settings of a run.
///
/// # Errors
/// [`EngineError::NotBuiltIn`], or as [`EngineBackend::configure`].
pub fn configure(
    kind: EngineKind,
    request: &EngineRequest<'_>,
) -> Result<Box<dyn EngineBackend>, EngineError> {
    let engine = ENGINES.iter().find(|(registered, _)| *registered == kind);
    match engine {
        Some((_, configure)) => configure(request),
        None => Err(EngineError::NotBuiltIn {
            engine: kind,
            built_in: kinds().map(EngineKind::as_str).collect::<Vec<_>>().join(", "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use regatta_test_support::fixture::Fixture;
    use regatta_types::Scenario;
    use regatta_types::engine_settings::EngineSettings;

    use super::*;

    #[test]
    fn every_kind_has_at_most_one_engine_which_knows_its_kind() {
        let of_all = EngineKind::ALL.into_iter();
        let is_built_in = |kind: &EngineKind| match kind {
            EngineKind::Tract => cfg!(feature = "tract"),
            EngineKind::Onnxruntime => cfg!(feature = "onnxruntime"),
            _ => true,
        };
        let expected: Vec<_> = of_all.filter(is_built_in).collect();
        assert_eq!(kinds().collect::<Vec<_>>(), expected);
        let benchmark = Fixture::new().benchmark();
        let server = EngineSettings::parse(EngineKind::Server, [("server", "llama-cpp")]).unwrap();
        // TensorRT's needs a device, and ONNX Runtime's a library.
        let needs_nothing =
            |kind: &EngineKind| !matches!(kind, EngineKind::Tensorrt | EngineKind::Onnxruntime);
        for kind in kinds().filter(needs_nothing) {
            let request = EngineRequest {
                settings: &server,
                scenario: Scenario::Offline,
                model: &benchmark.model,
                scratch: None,
                sends_first_tokens: false,
                files: std::path::Path::new("."),
            };
            assert_eq!(configure(kind, &request).unwrap().kind(), kind);
        }
    }
}
