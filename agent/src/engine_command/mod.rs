//! `engine build|inspect|list`: TensorRT engines from the command line. TensorRT itself is behind `regatta-tensorrt`; what is
//! here is files, memory, words and exit codes.

mod build;
mod calibration;
mod inspect;
mod installation;
mod list;
mod memory;
mod print;
mod settings;
mod watch;

use regatta_tensorrt::{BuildError, CacheError, TensorRtOpenError};

use crate::{cli::EngineCommand, exit::Failure};

/// Does what was asked. Returns the exit code.
///
/// # Errors
/// [`Failure`] with the documented exit code.
pub(crate) fn engine(command: &EngineCommand) -> Result<u8, Failure> {
    match command {
        EngineCommand::Build(args) => build::build(args),
        EngineCommand::Inspect(args) => inspect::inspect(args),
        EngineCommand::List(args) => list::list(args),
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

/// A model or a setting that cannot be is the user's affair, the rest is the machine's.
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
