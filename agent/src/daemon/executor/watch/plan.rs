//! The task of a run's state guard: the state to hold and the paths of the device's files.

use std::path::PathBuf;

use regatta_types::documents::{GateSpec, StateSpec};

/// The task of the guard.
#[derive(Debug, Clone)]
pub(crate) struct WatchPlan {
    /// The requested state. `None` leaves the device unchanged.
    pub(crate) state: Option<StateSpec>,
    /// What must hold before the state is set. `None` sets it at once.
    pub(crate) gate: Option<GateSpec>,
    /// The helper's socket.
    pub(crate) socket: PathBuf,
    /// The root directory for the device's files.
    pub(crate) root: PathBuf,
    /// The file of a power meter between the wall and the board.
    pub(crate) wall_meter: Option<PathBuf>,
    /// The directory of the run's files.
    pub(crate) files: PathBuf,
    /// LoadGen's processor.
    pub(crate) timing_cpu: Option<usize>,
}
