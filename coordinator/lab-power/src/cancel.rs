//! The request to end a session early, from another thread or from a signal.

use std::sync::{Arc, OnceLock};

use regatta_types::documents::EndCause;

/// A request that a session notices within a second. Clones are the same request.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<OnceLock<CancelReason>>);

impl Cancel {
    /// Requests the end. The first reason counts.
    pub fn request(&self, reason: CancelReason) {
        let _ = self.0.set(reason);
    }

    /// Returns the reason of the request, if there is one.
    pub fn requested(&self) -> Option<CancelReason> {
        self.0.get().copied()
    }
}

/// Why a session is to end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CancelReason {
    /// The user interrupted the command.
    #[error("it was interrupted")]
    Interrupted,
    /// A user aborted the campaign.
    #[error("its campaign was aborted")]
    CampaignAborted,
    /// The coordinator that makes the session stops.
    #[error("the coordinator was stopped")]
    CoordinatorStops,
}

impl CancelReason {
    /// Returns whose doing it is. A session that ends with its coordinator can be repeated.
    pub const fn end_cause(self) -> EndCause {
        match self {
            Self::Interrupted | Self::CampaignAborted => EndCause::Operator,
            Self::CoordinatorStops => EndCause::Infrastructure,
        }
    }
}
