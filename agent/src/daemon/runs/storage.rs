//! What all runs share on disk: the directory of the runs, the reserve and the limit of unacknowledged chunks.

use std::path::PathBuf;

use crate::{config::AgentConfig, daemon::durable::Reserve};

/// The settings and the reserve that all runs share.
#[derive(Debug, Clone)]
pub(crate) struct Storage {
    /// Largest number of unacknowledged chunks of a run.
    pub(crate) window_chunks: u32,
    /// Reserved disk space for states and evidence.
    pub(crate) reserve: Reserve,
}

impl Storage {
    /// Returns the storage that the configuration names.
    pub(crate) fn new(config: &AgentConfig) -> Self {
        Self {
            window_chunks: config.window_chunks,
            reserve: Reserve::new(config.state_dir.join("reserve")),
        }
    }
}

/// Returns the directory of the runs.
pub(crate) fn runs_dir(config: &AgentConfig) -> PathBuf {
    config.state_dir.join("runs")
}
