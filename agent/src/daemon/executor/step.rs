//! What happens in the execution of a run. The event loop routes each step to the component that must act on it.

use crate::daemon::runs::{events::RunUpdate, job::ProcessIdentity};

/// A step in the execution of a run.
#[derive(Debug)]
pub(crate) enum ExecutionStep {
    /// The run queue must record something.
    Update(RunUpdate),
    /// The run has become active: the state guard has started, and logs may be delivered live.
    Activated,
    /// The run process has started and must be recorded, see `Executor::reject_process`.
    ProcessStarted(ProcessIdentity),
    /// Live delivery must stop: the process has ended, or the disk is almost full.
    LogsEnded,
}
