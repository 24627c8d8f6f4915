//! The operator who performs an action, with the right to it as of now.

use std::sync::Arc;

use super::{permissions::Access, visitor::Visitor};

/// The operator who performs an action. Only the gate makes one, after all its checks.
#[derive(Clone)]
pub(crate) struct Operator {
    name: String,
    /// The session or the token that permits the action.
    visitor: Visitor,
    access: Arc<Access>,
}

impl Operator {
    /// Creates the operator who owns a token, as long as `visitor` is admitted.
    pub(super) fn of(name: &str, visitor: Visitor, access: &Arc<Access>) -> Self {
        Self {
            name: name.to_owned(),
            visitor,
            access: Arc::clone(access),
        }
    }

    /// Returns whether the operator may still act: the action may have waited for its turn while the token was revoked.
    pub(crate) fn may_act(&self) -> bool {
        self.access.admits(&self.visitor)
    }

    /// Returns the author of a change in the logs of the lab. It cannot be mistaken for a user of the command line, or for the coordinator.
    pub(crate) fn author(&self) -> String {
        format!("{} (live page)", self.name)
    }
}
