//! What the state guard of a run is to do: the state to hold and where the device's files are.

use std::path::PathBuf;

use regatta_types::documents::StateSpec;

/// What the guard is to do.
#[derive(Debug, Clone)]
pub(crate) struct WatchPlan {
    /// The requested state; `None` takes the device as it is.
    pub(crate) state: Option<StateSpec>,
    /// Where the helper listens.
    pub(crate) socket: PathBuf,
    /// The root below which the device's files are read.
    pub(crate) root: PathBuf,
    /// Where the run's files lie.
    pub(crate) files: PathBuf,
    /// LoadGen's processor.
    pub(crate) timing_cpu: Option<usize>,
}
