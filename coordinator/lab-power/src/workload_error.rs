//! Why a run of a session, or what happened beside it, ended the session.

use std::{io, path::PathBuf, time::Duration};

use regatta_power::session::{Part, WorkloadError};
use regatta_types::{
    RunId,
    documents::{DocumentError, EndCause},
};

use super::{cancel::CancelReason, session_watch::ClockStep};
use regatta_lab_store::StoreError;

/// An error of a session's workload.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunWorkloadError {
    /// The end was requested.
    #[error(transparent)]
    Cancelled(CancelReason),
    /// Another run was on the device.
    #[error("run {0} was on the device at the same time as the session, so the meter measured both")]
    Beside(RunId),
    /// A clock was stepped.
    #[error(transparent)]
    Clock(#[from] ClockStep),
    /// The coordinator is gone.
    #[error("the coordinator has ended; start `regatta serve` again")]
    NotServed,
    /// The device's agent is gone.
    #[error("the device's agent was offline for {} s during the {part} run {run}", .time.as_secs())]
    Offline { part: Part, run: RunId, time: Duration },
    /// The run was removed.
    #[error("run {0} is gone from the store")]
    Gone(RunId),
    /// The run outlived its limit.
    #[error("the {part} run {run} has not ended {} s after its limit of {} s", .waited.as_secs(), .limit.as_secs())]
    Limit {
        part: Part,
        run: RunId,
        limit: Duration,
        waited: Duration,
    },
    /// The run is not good.
    #[error("the {part} run {run} has no valid result ({reason}); see `regatta runs show {run}`")]
    NotGood {
        part: Part,
        run: RunId,
        cause: EndCause,
        reason: String,
    },
    /// The run was on another machine.
    #[error(
        "the evidence of the {part} run {run} does not name the boot of the client's machine: the meter measured another machine, or the \
         device was restarted"
    )]
    AnotherMachine { part: Part, run: RunId },
    /// A document of a run cannot be read.
    #[error("cannot read {}", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A document of a run is malformed.
    #[error("cannot use {}", .path.display())]
    Document {
        path: PathBuf,
        #[source]
        source: DocumentError,
    },
    /// The measured rate cannot be compared with the requested one.
    #[error("the rate of run {run} cannot be compared")]
    Rate {
        run: RunId,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The client does not get the logs.
    #[error("cannot pass the logs of run {run} to the client")]
    HandOver {
        run: RunId,
        #[source]
        source: io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RunWorkloadError {
    const fn end_cause(&self) -> EndCause {
        match self {
            Self::NotGood { cause, .. } => *cause,
            Self::Cancelled(reason) => reason.end_cause(),
            _ => EndCause::Infrastructure,
        }
    }
}

impl From<RunWorkloadError> for WorkloadError {
    fn from(error: RunWorkloadError) -> Self {
        Self::new(error.end_cause(), error)
    }
}
