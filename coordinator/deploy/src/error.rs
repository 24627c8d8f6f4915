//! Errors of a deployment: the errors of its layers, and the hint for each.

use regatta_ssh::LinkLost;
use regatta_types::documents::EndCause;

use super::{
    board_installation::StepError, compatibility::CompatibilityError, hello::HelloError,
    identity::IdentityError, lab::LabError, package_source::NoPackageError, survey::SurveyError,
};
use regatta_lab_net::enrollment::TokenError;
use regatta_lab_store::StoreError;

/// The reason why a deployment failed.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The survey failed.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    #[error(transparent)]
    Link(#[from] LinkLost),
    /// The agent does not support the board.
    #[error(transparent)]
    CompatibilityError(#[from] CompatibilityError),
    #[error(transparent)]
    NoPackage(#[from] NoPackageError),
    /// A shim cannot be added to a package.
    #[error("the package cannot be extended by the board's TensorRT shim")]
    Repack(#[source] std::io::Error),
    /// The board is not the expected one.
    #[error(transparent)]
    IdentityError(#[from] IdentityError),
    /// The lab cannot accept boards.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// No token could be issued.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A step failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The coordinator received no hello.
    #[error(transparent)]
    HelloError(#[from] HelloError),
    /// The store failed.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// A failure after the board was changed, with the board's state now.
    #[error("{cause}; {undone}")]
    Undone {
        cause: Box<Self>,
        /// The board's state now.
        undone: String,
    },
}

impl DeployError {
    /// Returns the cause of the failure.
    pub fn cause(&self) -> EndCause {
        match self {
            Self::CompatibilityError(_)
            | Self::NoPackage(_)
            | Self::IdentityError(_)
            | Self::Step(StepError::NoSudoer { .. }) => EndCause::Precondition,
            Self::Step(StepError::Refused { .. })
            | Self::HelloError(HelloError::Silent(_) | HelloError::OtherAgent) => EndCause::Device,
            Self::Undone { cause, .. } => cause.cause(),
            Self::Survey(_)
            | Self::Link(_)
            | Self::Lab(_)
            | Self::Token(_)
            | Self::Repack(_)
            | Self::Step(StepError::Link(_) | StepError::Package(_))
            | Self::HelloError(HelloError::Unserved | HelloError::Store(_))
            | Self::Store(_) => EndCause::Infrastructure,
        }
    }

    /// Returns the hint for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::CompatibilityError(unfit) => unfit.hint().map(str::to_owned),
            Self::NoPackage(error) => Some(error.hint.clone()),
            Self::IdentityError(error) => error.hint(),
            Self::Lab(error) => error.hint(),
            Self::Link(_) | Self::Step(StepError::Link(_)) | Self::Survey(SurveyError::Link(_)) => {
                Some("run the same command again: it continues where this one ended".to_owned())
            }
            Self::HelloError(HelloError::Silent(_)) => Some(
                "does the board reach the coordinator? --coordinator HOST names another address for it"
                    .to_owned(),
            ),
            Self::Undone { cause, .. } => cause.hint(),
            _ => None,
        }
    }
}
