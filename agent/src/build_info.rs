//! This build of the agent: its version.

/// The agent's version, as in hellos and evidence.
pub(crate) const AGENT_VERSION: &str = concat!("regatta-agent ", env!("CARGO_PKG_VERSION"));
