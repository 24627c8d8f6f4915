//! The error of deploying to one board, its cause and its hint.

use regatta_ssh::SshError;
use regatta_types::documents::EndCause;

use crate::cli::ssh_hint::ssh_hint;
use regatta_deploy::DeployError;

/// The reason why one board was not deployed to.
#[derive(Debug, thiserror::Error)]
pub(super) enum BoardError {
    /// The connection failed.
    #[error(transparent)]
    Ssh(#[from] SshError),
    /// A step failed.
    #[error(transparent)]
    Deploy(#[from] DeployError),
    /// The board has a run, which an upgrade would end.
    #[error("it has a run, which the upgrade would end")]
    Busy,
    /// The board has the new agent, and something is wrong with it.
    #[error("after the upgrade: {reason}")]
    Unhealthy {
        cause: EndCause,
        /// The same as a sentence.
        reason: String,
    },
}

impl BoardError {
    /// Returns the error of a device that is not as it should be after its upgrade.
    pub(super) const fn unhealthy(cause: EndCause, reason: String) -> Self {
        Self::Unhealthy { cause, reason }
    }

    /// Returns the hint for the user.
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Ssh(error) => ssh_hint(error),
            Self::Deploy(error) => error.hint(),
            Self::Busy => Some("let it finish with `regatta device drain --wait`, or use --force".to_owned()),
            Self::Unhealthy { .. } => None,
        }
    }

    /// Returns the cause of the failed attempt.
    pub(super) fn cause(&self) -> EndCause {
        match self {
            Self::Ssh(_) => EndCause::Infrastructure,
            Self::Deploy(error) => error.cause(),
            Self::Busy => EndCause::Precondition,
            Self::Unhealthy { cause, .. } => *cause,
        }
    }
}
