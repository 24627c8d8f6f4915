//! The events of a run that the run queue and other components exchange. The event loop routes these values.

use std::collections::BTreeSet;

use regatta_types::{
    RunId,
    assets::Assets,
    documents::{DeviceFacts, RunPhase, StateProof, WindowCost},
};

use super::{job::Ending, run_dir::RunDir, window_policy::WindowPolicy};

/// What other components must know about a run.
#[derive(Debug)]
pub(crate) enum RunEvent {
    /// The run's state must be published: it has changed, or the coordinator needs it again.
    StateDue(RunId),
    /// The run has ended, or has missing files, and must be sealed.
    SealingDue(RunId),
    /// The run is the next one and must be executed.
    StartDue(RunStart),
    /// The run is gone. Its retained state must be cleared.
    Removed(RunId),
    /// The coordinator named a run that is not on this device.
    Unknown,
}

#[derive(Debug)]
pub(crate) struct RunStart {
    pub(crate) run: RunId,
    /// The run's directory.
    pub(crate) dir: RunDir,
    /// The daemon's behaviour during the measurement window.
    pub(crate) window_policy: WindowPolicy,
    /// The assets that the run needs, if any.
    pub(crate) assets: Option<RequiredAssets>,
}

/// The assets that must be on the device before a run starts.
#[derive(Debug)]
pub(crate) struct RequiredAssets {
    /// The assets of the run.
    pub(crate) assets: Assets,
    /// SHA-256 of the assets of all unfinished runs, which must stay on the device.
    pub(crate) pinned: BTreeSet<String>,
}

/// An event of a run's execution. The run queue records it.
#[derive(Debug)]
pub(crate) enum RunUpdate {
    /// The run enters a phase, with a reason.
    Phase(RunPhase, Option<String>),
    /// The device's facts before the run.
    FactsBefore(Box<DeviceFacts>),
    /// The proof of the device's state, so far.
    DeviceState(Box<StateProof>),
    /// The daemon's resource usage in the measurement window.
    WindowCost(WindowCost),
    /// The run has ended and only needs sealing.
    Ended(Ending),
}
