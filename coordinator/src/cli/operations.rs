//! Turns the refusals of operations into failures of commands.

use crate::exit::Failure;
use regatta_lab_views::operations::{OperationError, Refusal};

/// Returns the failure of a command whose operation was not done.
pub(super) fn unless_permitted(error: OperationError) -> Failure {
    match error {
        OperationError::Refused(Refusal { sentence, hint }) => Failure::misuse(sentence).hint(hint),
        OperationError::Store(error) => Failure::from(error),
    }
}
