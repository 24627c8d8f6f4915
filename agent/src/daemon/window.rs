//! How the daemon behaves in a run's timed window, and what it costs there: bytes handed to the network, processor time,
//! wake-ups. Reads counters at both ends of the window and steps aside from LoadGen's processor; limits nothing.

use regatta_types::documents::{Delivery, RunSpec, WindowCost};
use rustix::{
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
    time::{ClockId, clock_gettime},
};

use crate::{thread_counters::ThreadCounters, timing_cpu};

/// What a run's spec asks of the daemon for the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WindowPolicy {
    /// Whether logs leave the device while LoadGen runs.
    pub(crate) live: bool,
    /// The processor that LoadGen's issuing thread keeps to, where it keeps to one.
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

/// The counters at the window's beginning.
#[derive(Debug)]
pub(crate) struct WindowMeter {
    bytes_sent: u64,
    cpu_ns: u64,
    thread: ThreadCounters,
    aside: Option<CpuExclusion>,
}

impl WindowMeter {
    /// Opens the window. From here on the daemon keeps off the timing processor.
    pub(crate) fn open(bytes_sent: u64, window_policy: WindowPolicy) -> Self {
        Self {
            bytes_sent,
            cpu_ns: process_cpu_ns(),
            aside: window_policy.timing_cpu.and_then(CpuExclusion::from),
            thread: ThreadCounters::read(),
        }
    }

    /// Closes the window; what was used in it.
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

/// Keeps the calling thread of the daemon off a processor until dropped.
#[derive(Debug)]
pub(super) struct CpuExclusion {
    cpu: u32,
    before: CpuSet,
}

impl CpuExclusion {
    /// Steps aside; `None` where there is no other processor, or the kernel refuses.
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
        // They were allowed a moment ago; there is nothing to do about a refusal.
        let _ = sched_setaffinity(None, &self.before);
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
