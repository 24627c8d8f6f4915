//! The error of questions about the lab that a person asks: which device, which run, what compares with what. Its kind says whose mistake
//! it is: the command line turns it into an exit code, the page into an HTTP status.

use std::{error::Error, fmt};

use regatta_text::ErrorChain;
use regatta_types::ErrorKind;

use crate::StoreError;

/// An error with its kind, and a hint for the person who asked.
#[derive(Debug)]
pub struct LabError {
    kind: ErrorKind,
    cause: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
}

impl LabError {
    /// Creates an error of the person who asked, from the error of a parser or of a catalogue.
    pub fn usage(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: ErrorKind::Usage,
            cause: cause.into(),
            hint: None,
        }
    }

    /// Creates an error of the person who asked, with its own message.
    pub fn misuse(message: impl fmt::Display) -> Self {
        Self::usage(message.to_string())
    }

    /// Creates an error of the store or of a file.
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            kind: ErrorKind::Internal,
            cause: cause.into(),
            hint: None,
        }
    }

    /// Adds a hint: what to do about it.
    pub fn hint(mut self, advice: impl fmt::Display) -> Self {
        self.hint = Some(advice.to_string());
        self
    }

    /// Returns who has to act.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the error chain as one sentence.
    pub fn sentence(&self) -> String {
        ErrorChain(self.cause.as_ref()).to_string()
    }

    /// Returns the hint.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl Error for LabError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
    }
}

impl From<StoreError> for LabError {
    fn from(error: StoreError) -> Self {
        Self::internal(error)
    }
}
