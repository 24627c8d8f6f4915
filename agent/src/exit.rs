//! The failure that carries an exit code to `main`.

use std::fmt;

use regatta_catalogue::catalogue::CatalogueError;
use regatta_text::ErrorChain;
use regatta_types::ExitCode;

/// Why a command ended without a result, with its exit code. `Display` prints the chain of causes as one line.
#[derive(Debug)]
pub struct Failure {
    code: ExitCode,
    error: anyhow::Error,
}

impl Failure {
    /// Returns a usage error: exit code 2.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: ExitCode::Usage,
            error: error.into(),
        }
    }

    /// Returns a failure of the machine, the network or a file: exit code 3.
    pub(crate) fn could_not(error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: ExitCode::Failed,
            error: error.into(),
        }
    }

    /// Returns the same failure with an additional error.
    pub(crate) fn besides(self, other: anyhow::Error) -> Self {
        Self {
            error: anyhow::anyhow!("{:#}; besides, {other:#}", self.error),
            ..self
        }
    }

    /// Returns the exit code.
    pub const fn code(&self) -> ExitCode {
        self.code
    }
}

impl fmt::Display for Failure {
    /// Formats the chain of causes as one sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ErrorChain(self.error.as_ref()).fmt(f)
    }
}

/// A wrong name or file content is a usage error; a file that cannot be read is a failure.
impl From<CatalogueError> for Failure {
    fn from(error: CatalogueError) -> Self {
        match error {
            CatalogueError::Io { .. } | CatalogueError::BuiltIn(_) => Self::could_not(error),
            CatalogueError::Unknown { .. }
            | CatalogueError::OfEndpoints { .. }
            | CatalogueError::NothingForRun { .. }
            | CatalogueError::File { .. } => Self::usage(error),
        }
    }
}

/// An error that is not marked as a usage error is a failure.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::could_not(error)
    }
}
