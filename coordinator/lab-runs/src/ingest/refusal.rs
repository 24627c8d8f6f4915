//! The reasons why a message is rejected. `reject_counters` counts and logs refusals.

use regatta_wire::frame::FrameError;

use super::{reject_counters::RejectKind, report::ReportError};
use regatta_lab_store::StoreError;

/// The reason for rejecting a message: the kind to count and the detail to log.
pub(super) struct Refusal(pub(super) RejectKind, pub(super) Box<dyn std::fmt::Display>);

impl Refusal {
    pub(super) fn new(kind: RejectKind, detail: impl std::fmt::Display + 'static) -> Self {
        Self(kind, Box::new(detail))
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::new(RejectKind::Storage, format!("{:#}", anyhow::Error::from(error)))
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::new(RejectKind::Storage, error)
    }
}

impl From<ReportError> for Refusal {
    fn from(error: ReportError) -> Self {
        let kind = match &error {
            // A message of another kind is not signed.
            ReportError::Envelope(FrameError::Kind { .. })
            | ReportError::OtherDevice(_)
            | ReportError::Forged => RejectKind::Unsigned,
            ReportError::Envelope(_) => RejectKind::Frame,
        };
        Self::new(kind, format!("{:#}", anyhow::Error::from(error)))
    }
}

impl From<FrameError> for Refusal {
    fn from(error: FrameError) -> Self {
        Self::new(RejectKind::Frame, error)
    }
}
