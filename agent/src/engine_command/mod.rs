//! `engine build|inspect|list|remove`: the command line for TensorRT engines. `regatta-tensorrt` wraps TensorRT. This module
//! handles files, memory checks, output and exit codes.

mod build;
mod calibration;
mod inspect;
mod installation;
mod list;
mod memory;
mod print;
mod remove;
mod settings;
mod watch;

use regatta_tensorrt::{BuildError, CacheError, TensorRtOpenError};
use regatta_types::ExitCode;

use crate::{cli::EngineCommand, exit::Failure};

/// Executes a command and returns the exit code.
///
/// # Errors
/// [`Failure`] with the documented exit code.
pub(crate) fn engine(command: &EngineCommand) -> Result<ExitCode, Failure> {
    match command {
        EngineCommand::Build(args) => build::build(args),
        EngineCommand::Inspect(args) => inspect::inspect(args),
        EngineCommand::List(args) => list::list(args),
        EngineCommand::Remove(args) => remove::remove(args),
    }
}

impl From<TensorRtOpenError> for Failure {
    fn from(error: TensorRtOpenError) -> Self {
        Self::could_not(error)
    }
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Self {
        Self::could_not(error)
    }
}

/// A model or setting that is not valid is a usage error. Other errors are failures.
impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Model(_) | BuildError::Unsupported(_) | BuildError::Fallback { .. } => {
                Self::usage(error)
            }
            BuildError::Build(_)
            | BuildError::Plan(_)
            | BuildError::Calibration(_)
            | BuildError::Cancelled => Self::could_not(error),
        }
    }
}
