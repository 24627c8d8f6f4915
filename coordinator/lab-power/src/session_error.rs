//! Why a session could not begin or could not be recorded, and how the failure of one that began is recorded. Each has a cause, by which a
//! campaign decides whether it makes another one.

use std::{error::Error, io, path::PathBuf, time::Duration};

use regatta_power::session::SessionError;
use regatta_text::{ErrorChain, escape_lines};
use regatta_types::{
    DeviceId, RunId,
    documents::{EndCause, RecordedFailure},
};

use super::{
    cancel::CancelReason, meter_lease::LeaseError, preflight_line::PreflightLine,
    session_record::SessionRecordError,
};
use regatta_lab_store::StoreError;

/// A session that could not begin, or that could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum PowerSessionError {
    /// Meter or device cannot be leased.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The end was requested before it began.
    #[error("the session has not begun: {0}")]
    Cancelled(CancelReason),
    /// A run of an earlier session is still on the device.
    #[error("run {run} of an earlier power session has not ended within {} s", .waited.as_secs())]
    EarlierRun {
        run: RunId,
        /// The time that was waited.
        waited: Duration,
    },
    /// Checks before the session failed.
    #[error("a session cannot succeed: {}", list(.0))]
    Preflight(Vec<PreflightLine>),
    /// The device was removed.
    #[error("the device {0} is no longer in the lab")]
    NoDevice(DeviceId),
    /// The session's directory cannot be made.
    #[error("cannot make {}", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The record cannot be written.
    #[error(transparent)]
    Record(#[from] SessionRecordError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PowerSessionError {
    /// Returns whose failure it is.
    pub const fn end_cause(&self) -> EndCause {
        match self {
            Self::Preflight(_) | Self::NoDevice(_) | Self::Lease(LeaseError::Gone(_)) => {
                EndCause::Precondition
            }
            Self::Cancelled(reason) => reason.end_cause(),
            Self::Lease(_)
            | Self::EarlierRun { .. }
            | Self::Directory { .. }
            | Self::Record(_)
            | Self::Store(_) => EndCause::Infrastructure,
        }
    }

    /// Returns the remedy, if the error does not contain it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::EarlierRun { run, .. } => Some(format!("`regatta runs show {run}` shows its state")),
            _ => None,
        }
    }

    /// Returns it as it is stored.
    pub fn recorded(&self) -> RecordedFailure {
        recorded(self.end_cause(), self, self.hint().as_deref())
    }
}

/// Returns the failed checks, with the remedy of each.
fn list(lines: &[PreflightLine]) -> String {
    let failed = lines
        .iter()
        .filter(|line| !line.passed)
        .map(|line| match &line.hint {
            Some(hint) => format!("{}: {} ({hint})", line.subject, line.found),
            None => format!("{}: {}", line.subject, line.found),
        });
    failed.collect::<Vec<_>>().join("; ")
}

/// Returns the remedy for the failure of a session that began.
pub fn session_hint(error: &SessionError) -> Option<String> {
    match error {
        SessionError::Failed(failed) if failed.is_system_lost() => Some(format!(
            "{}; if its client had only to finish, `regatta power fetch last` fetches the session once the machine answers",
            failed.hint
        )),
        SessionError::Failed(failed) => Some(failed.hint.to_owned()),
        SessionError::Uncollected { .. } => {
            Some("`regatta power fetch last` fetches them once the machine answers".to_owned())
        }
        _ => None,
    }
}

/// Returns the failure of a session that began, as it is recorded.
pub(super) fn recorded_failure(error: &SessionError) -> RecordedFailure {
    recorded(error.end_cause(), error, session_hint(error).as_deref())
}

/// Formats a failure for the record: the error chain as one sentence, and the hint on separate lines.
pub(super) fn recorded(
    cause: EndCause,
    error: &(dyn Error + 'static),
    hint: Option<&str>,
) -> RecordedFailure {
    let mut reason = ErrorChain(error).to_string();
    if let Some(hint) = hint {
        reason.push_str("\n  ");
        reason.push_str(&escape_lines(hint).replace('\n', "\n  "));
    }
    RecordedFailure { cause, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_the_cause_by_which_a_campaign_decides() {
        let lines = vec![
            PreflightLine::passed("clocks", "1 ms"),
            PreflightLine::failed("PTDaemon", "it is gone", "start it"),
        ];
        let cases = [
            (PowerSessionError::Preflight(lines), EndCause::Precondition),
            (LeaseError::Gone("lab".to_owned()).into(), EndCause::Precondition),
            (
                LeaseError::DeviceHasRuns(Vec::new()).into(),
                EndCause::Infrastructure,
            ),
            (
                PowerSessionError::Cancelled(CancelReason::CampaignAborted),
                EndCause::Operator,
            ),
            (
                PowerSessionError::Cancelled(CancelReason::CoordinatorStops),
                EndCause::Infrastructure,
            ),
        ];
        for (error, cause) in &cases {
            assert_eq!(error.recorded().cause, *cause, "{error}");
        }
        assert_eq!(
            cases[0].0.recorded().reason,
            "a session cannot succeed: PTDaemon: it is gone (start it)"
        );
    }
}
