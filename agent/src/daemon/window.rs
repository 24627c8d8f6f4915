//! What the daemon costs while LoadGen runs: bytes handed to the network and processor time of its own. Reads counters
//! at both ends of the window; limits nothing.

use regatta_rules::documents::WindowCost;
use rustix::time::{ClockId, clock_gettime};

/// The counters at the window's beginning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowMeter {
    bytes_sent: u64,
    cpu_ns: u64,
}

impl WindowMeter {
    /// Opens the window.
    pub(crate) fn open(bytes_sent: u64) -> Self {
        Self {
            bytes_sent,
            cpu_ns: process_cpu_ns(),
        }
    }

    /// What was used since.
    pub(crate) fn cost(self, bytes_sent: u64) -> WindowCost {
        WindowCost {
            bytes_sent: bytes_sent.saturating_sub(self.bytes_sent),
            daemon_cpu_ns: process_cpu_ns().saturating_sub(self.cpu_ns),
        }
    }
}

/// Processor time of every thread of this process.
fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
