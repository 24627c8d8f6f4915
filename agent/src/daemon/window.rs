//! The daemon's behaviour during the measurement window, and its cost there: bytes sent, processor time and wake-ups.
//! The daemon reads counters at both ends of the window and leaves LoadGen's processor. It does not limit anything.

use regatta_types::documents::{Delivery, RunSpec, WindowCost};
use rustix::{
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
    time::{ClockId, clock_gettime},
};

use crate::{thread_counters::ThreadCounters, timing_cpu};

/// The daemon's behaviour in the window, as the run's spec requests it.
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

/// The counters at the start of the window.
#[derive(Debug)]
pub(crate) struct WindowMeter {
    bytes_sent: u64,
    cpu_ns: u64,
    thread: ThreadCounters,
    aside: Option<CpuExclusion>,
}

impl WindowMeter {
    /// Opens the window. Until it closes, the daemon does not use the timing processor.
    pub(crate) fn open(bytes_sent: u64, window_policy: WindowPolicy) -> Self {
        Self {
            bytes_sent,
            cpu_ns: process_cpu_ns(),
            aside: window_policy.timing_cpu.and_then(CpuExclusion::from),
            thread: ThreadCounters::read(),
        }
    }

    /// Closes the window and returns its cost.
    pub(crate) fn close(self, bytes_sent: u64) -> WindowCost {
        let thread = ThreadCounters::read().since(self.thread);
        WindowCost {
            bytes_sent: bytes_sent.saturating_sub(self.bytes_sent),
            daemon_cpu_ns: process_cpu_ns().saturating_sub(self.cpu_ns),
            daemon_wakeups: thread.sleeps,
            daemon_migrations: thread.migrations,
            daemon_kept_off_cpu: self.aside.as_ref().map(|aside| aside.cpu),
            ..WindowCost::default()
        }
    }
}

/// Excludes a processor for the calling thread of the daemon until dropped.
#[derive(Debug)]
pub(super) struct CpuExclusion {
    cpu: u32,
    before: CpuSet,
}

impl CpuExclusion {
    /// Excludes the processor. Returns `None` if there is no other processor or the kernel refuses.
    pub(super) fn from(cpu: usize) -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        if cpu >= CpuSet::MAX_CPU {
            return None;
        }
        let mut others = before;
        others.unset(cpu);
        if others.count() == 0 {
            return None;
        }
        sched_setaffinity(None, &others).ok()?;
        let cpu = u32::try_from(cpu).ok()?;
        Some(Self { cpu, before })
    }
}

impl Drop for CpuExclusion {
    fn drop(&mut self) {
        // The kernel allowed this set before. An error cannot be handled here.
        let _ = sched_setaffinity(None, &self.before);
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
    use super::*;
    use crate::thread_counters::allowed_cpus;

    #[test]
    fn the_daemon_steps_aside_for_the_window_and_comes_back() {
        let before = allowed_cpus();
        let Some(&timing) = before.first().filter(|_| before.len() > 1) else {
            println!("left out: one processor");
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
