//! The error of deploying to one board, and its hint.

use crate::deploy::{DeployError, ssh::SshError};

/// The reason why one board was not deployed to.
#[derive(Debug, thiserror::Error)]
pub(super) enum BoardError {
    /// The connection failed.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// A step failed.
    #[error(transparent)]
    Deploy(#[from] DeployError),
}

impl BoardError {
    /// The hint for the user.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Ssh(error) => error.hint(),
            Self::Deploy(error) => error.hint(),
        }
    }
}
