//! The daemon's cost during the measurement window: bytes sent, processor time and wake-ups. The daemon reads counters at
//! both ends of the window and leaves LoadGen's processor. This module does not limit anything.

use regatta_types::documents::WindowCost;
use rustix::time::{ClockId, clock_gettime};

use crate::{
    daemon::{cpu_exclusion::CpuExclusion, runs::window_policy::WindowPolicy},
    thread_counters::ThreadCounters,
};

/// The counters at the start of the window.
#[derive(Debug)]
pub(crate) struct WindowMeter {
    bytes_sent: u64,
    cpu_ns: u64,
    thread: ThreadCounters,
    cpu_exclusion: Option<CpuExclusion>,
}

impl WindowMeter {
    /// Opens the window. Until it closes, the daemon does not use the timing processor.
    pub(crate) fn open(bytes_sent: u64, window_policy: WindowPolicy) -> Self {
        Self {
            bytes_sent,
            cpu_ns: process_cpu_ns(),
            cpu_exclusion: window_policy.timing_cpu.and_then(CpuExclusion::from),
            thread: ThreadCounters::read(),
        }
    }

    pub(crate) fn close(self, bytes_sent: u64) -> WindowCost {
        let thread = ThreadCounters::read().since(self.thread);
        WindowCost {
            bytes_sent: bytes_sent.saturating_sub(self.bytes_sent),
            daemon_cpu_ns: process_cpu_ns().saturating_sub(self.cpu_ns),
            daemon_wakeups: thread.sleeps,
            daemon_migrations: thread.migrations,
            daemon_kept_off_cpu: self.cpu_exclusion.as_ref().map(CpuExclusion::cpu),
            ..WindowCost::default()
        }
    }
}

/// Returns the processor time of all threads of this process in nanoseconds.
fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use regatta_test_requirements::{Requirement, skip};

    use super::*;
    use crate::thread_counters::allowed_cpus;

    #[test]
    fn the_daemon_leaves_the_timing_processor_for_the_window_only() {
        let before = allowed_cpus();
        let Some(&timing) = before.first().filter(|_| before.len() > 1) else {
            skip(Requirement::Machine, "the machine has one processor");
            return;
        };
        let window_policy = WindowPolicy {
            live: true,
            timing_cpu: Some(timing),
        };
        let meter = WindowMeter::open(1_000, window_policy);
        assert!(!allowed_cpus().contains(&timing));
        let cost = meter.close(1_300);
        assert_eq!(cost.bytes_sent, 300);
        assert_eq!(cost.daemon_kept_off_cpu, u32::try_from(timing).ok());
        assert_eq!(allowed_cpus(), before);
    }
}
