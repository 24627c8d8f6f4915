//! Errors of the harness during a run, and a store for the first one. LoadGen's outcome only states that a run is
//! invalid. The stored error states why.

use std::{
    error::Error,
    sync::{Arc, OnceLock},
};

use regatta_engines::EngineError;
use regatta_loadgen::sut::{QuerySampleIndex, SutError};
use regatta_text::ErrorChain;

/// Why the harness cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// The engine reported an error.
    #[error("the engine failed")]
    Engine(#[source] EngineError),
    /// The engine panicked. It is not used again.
    #[error("the engine crashed: {0}")]
    EnginePanicked(String),
    /// The number of answers differs from the number of samples.
    #[error("the engine returned {found} responses for {expected} samples")]
    AnswerCount {
        /// Number of answers.
        found: usize,
        /// Number of samples.
        expected: usize,
    },
    /// LoadGen issued a sample that is not loaded.
    #[error("sample {0} was requested but is not loaded")]
    NotLoaded(QuerySampleIndex),
    /// An earlier error has closed the harness.
    #[error("the run was abandoned: {0}")]
    Abandoned(String),
}

/// The first error of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstFault(Arc<OnceLock<String>>);

impl FirstFault {
    /// Stores `error` with its causes if it is the first, and returns it.
    pub(crate) fn remember(&self, error: impl Error + Send + Sync + 'static) -> SutError {
        let _ = self.0.set(ErrorChain(&error).to_string());
        Box::new(error)
    }

    /// Returns the first error with its causes, if there was one.
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}
