//! This build of the agent: its version and its engines.

use regatta_types::documents::EngineKind;

/// The agent's version, as in hellos and evidence.
pub(crate) const AGENT_VERSION: &str = concat!("regatta-agent ", env!("CARGO_PKG_VERSION"));

/// The engines of this build.
#[cfg(feature = "tract")]
pub(crate) const ENGINES: &[EngineKind] = &EngineKind::ALL;
/// The engines of this build.
#[cfg(not(feature = "tract"))]
pub(crate) const ENGINES: &[EngineKind] = &[EngineKind::Null, EngineKind::Tensorrt, EngineKind::Sim];
