//! The daemon's behaviour during a run's measurement window, as the run's spec requests it.

use regatta_types::documents::{Delivery, RunSpec};

use crate::timing_cpu;

/// The daemon's behaviour in the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WindowPolicy {
    /// Whether logs are sent while LoadGen runs.
    pub(crate) live: bool,
    /// The processor that LoadGen's issuing thread is pinned to, if any.
    pub(crate) timing_cpu: Option<usize>,
}

impl From<&RunSpec> for WindowPolicy {
    fn from(spec: &RunSpec) -> Self {
        Self {
            live: spec.delivery == Delivery::Live,
            timing_cpu: timing_cpu::of_run(spec),
        }
    }
}
