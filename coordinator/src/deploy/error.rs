//! Why a deployment fails: the layers' own errors under one roof, and what the user can do about each.

use super::{
    board::LinkLost, compatibility::CompatibilityError, hello::HelloError, identity::IdentityError,
    lab::LabError, site::StepError, survey::SurveyError,
};
use crate::{enrolment::TokenError, store::StoreError};

/// Why a board is not deployed to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeployError {
    /// It could not be looked at.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    /// The link broke.
    #[error(transparent)]
    Link(#[from] LinkLost),
    /// The agent does not fit it.
    #[error(transparent)]
    CompatibilityError(#[from] CompatibilityError),
    /// It is not the board that is meant.
    #[error(transparent)]
    IdentityError(#[from] IdentityError),
    /// The lab takes no boards.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// No token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A step failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// It was not heard.
    #[error(transparent)]
    HelloError(#[from] HelloError),
    /// The store failed.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// Something failed after the board was changed, and this is what became of it.
    #[error("{cause}; {undone}")]
    Undone {
        /// What failed.
        cause: Box<Self>,
        /// How the board stands now.
        undone: String,
    },
}

impl DeployError {
    /// What the user can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::CompatibilityError(unfit) => unfit.hint().map(str::to_owned),
            Self::IdentityError(error) => error.hint(),
            Self::Lab(error) => error.hint().map(str::to_owned),
            Self::Link(_) | Self::Step(StepError::Link(_)) | Self::Survey(SurveyError::Link(_)) => {
                Some("run the same command again: it goes on where this one ended".to_owned())
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
