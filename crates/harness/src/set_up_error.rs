//! Why a harness cannot be set up.

use std::io;

use regatta_engines::EngineError;
use regatta_types::documents::{EngineKind, end_reason};

use super::{fault::HarnessError, library::LibraryError, plan::ServingError};

/// Why a harness cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// The settings contradict each other.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// The engine needs files, but no scratch directory is set.
    #[error(
        "the {0} engine {missing}: a device of a lab gets them after `regatta asset add --benchmark` on the workstation; elsewhere name their directory with --scratch, MLPERF_SCRATCH_PATH or `scratch` in agent.toml",
        missing = end_reason::NO_BENCHMARK_FILES
    )]
    NoScratch(EngineKind),
    /// The dataset cannot be used.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The engine cannot be loaded.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine failed before LoadGen started.
    #[error("the warm-up failed")]
    WarmUp(#[source] HarnessError),
    /// The worker threads cannot be started.
    #[error("the worker threads cannot be started")]
    Threads(#[source] io::Error),
}

impl SetUpError {
    /// Returns whether the cause is a usage error rather than the machine.
    pub const fn is_wrong_use(&self) -> bool {
        matches!(
            self,
            Self::Serving(_) | Self::NoScratch(_) | Self::Engine(EngineError::Settings(_))
        )
    }
}
