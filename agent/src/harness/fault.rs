//! What goes wrong in the harness while LoadGen runs, and a place that remembers the first of it: LoadGen's outcome
//! says that a run is invalid, this says why in our own words.

use std::{
    error::Error,
    sync::{Arc, OnceLock},
};

use regatta_loadgen::sut::{QuerySampleIndex, SutError};
use regatta_text::ErrorChain;

use crate::engines::EngineError;

/// Why the harness cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HarnessError {
    /// The engine reports a failure.
    #[error("the engine failed")]
    Engine(#[source] EngineError),
    /// The engine panicked. It is not used again.
    #[error("the engine crashed: {0}")]
    EnginePanicked(String),
    /// The engine gave more or fewer answers than there were samples.
    #[error("the engine gave {given} answers to {expected} samples")]
    AnswerCount {
        /// Answers.
        given: usize,
        /// Samples.
        expected: usize,
    },
    /// LoadGen asks for a sample that it has not loaded.
    #[error("sample {0} was asked for but is not loaded")]
    NotLoaded(QuerySampleIndex),
    /// An earlier failure has closed the harness.
    #[error("the run was given up: {0}")]
    Abandoned(String),
}

/// Remembers the first fault of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstFault(Arc<OnceLock<String>>);

impl FirstFault {
    /// Remembers `error` with its causes if it is the first, and hands it on.
    pub(crate) fn remember(&self, error: impl Error + Send + Sync + 'static) -> SutError {
        let _ = self.0.set(ErrorChain(&error).to_string());
        Box::new(error)
    }

    /// The first fault with its causes, if there was one.
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}
