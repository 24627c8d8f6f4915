//! Why one board was not deployed to, and what its user can do about it.

use crate::deploy::{DeployError, ssh::SshError};

/// Why one board was not deployed to.
#[derive(Debug, thiserror::Error)]
pub(super) enum BoardError {
    /// No connection.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// A step failed.
    #[error(transparent)]
    Deploy(#[from] DeployError),
}

impl BoardError {
    /// What the user can do about it.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Ssh(error) => error.hint(),
            Self::Deploy(error) => error.hint(),
        }
    }
}
