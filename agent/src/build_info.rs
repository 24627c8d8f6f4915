//! What this build of the agent is: its version, and the engines that are compiled in. It does not look at the machine.

use regatta_types::documents::EngineKind;

/// The agent's version, as hellos and evidence carry it.
pub(crate) const AGENT_VERSION: &str = concat!("regatta-agent ", env!("CARGO_PKG_VERSION"));

/// The engines that this build can run.
#[cfg(feature = "tract")]
pub(crate) const ENGINES: &[EngineKind] = &EngineKind::ALL;
/// The engines that this build can run.
#[cfg(not(feature = "tract"))]
pub(crate) const ENGINES: &[EngineKind] = &[EngineKind::Null, EngineKind::Tensorrt, EngineKind::Sim];
