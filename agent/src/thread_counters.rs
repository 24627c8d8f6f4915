//! The kernel's counters of a thread: sleeps, preemptions and migrations. They are read at both ends of the measurement
//! window, never in it.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity};

/// The calling thread's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThreadCounters {
    /// Voluntary context switches: the thread went to sleep.
    pub(crate) sleeps: Option<u64>,
    /// Involuntary context switches: another thread took the processor.
    pub(crate) preemptions: Option<u64>,
    /// Migrations to another processor. Not every kernel reports them.
    pub(crate) migrations: Option<u64>,
}

impl ThreadCounters {
    /// Reads the calling thread's counters.
    pub(crate) fn read() -> Self {
        let text = |name: &str| fs::read_to_string(format!("/proc/thread-self/{name}")).unwrap_or_default();
        Self::parse(&text("status"), &text("sched"))
    }

    fn parse(status: &str, sched: &str) -> Self {
        Self {
            sleeps: number(status, "voluntary_ctxt_switches"),
            preemptions: number(status, "nonvoluntary_ctxt_switches"),
            migrations: number(sched, "se.nr_migrations"),
        }
    }

    /// Returns the increase since an earlier reading.
    pub(crate) fn since(self, earlier: Self) -> Self {
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            sleeps: since(self.sleeps, earlier.sleeps),
            preemptions: since(self.preemptions, earlier.preemptions),
            migrations: since(self.migrations, earlier.migrations),
        }
    }
}

/// Returns the number after `key` and a colon.
fn number(text: &str, key: &str) -> Option<u64> {
    let behind = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    text.lines().find_map(behind)?.parse().ok()
}

/// Returns the processors that the calling thread may use, in ascending order.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_subtracted() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t5\n";
        let sched = "x (1, #threads: 1)\n---\nse.nr_migrations      :     3\n";
        let earlier = ThreadCounters::parse(status, sched);
        assert_eq!(
            (earlier.sleeps, earlier.preemptions, earlier.migrations),
            (Some(150), Some(5), Some(3))
        );
        let later = ThreadCounters::parse(&status.replace("150", "152"), "");
        let cost = later.since(earlier);
        assert_eq!(
            (cost.sleeps, cost.preemptions, cost.migrations),
            (Some(2), Some(0), None)
        );
    }

    #[test]
    fn thread_counters_are_available_on_this_kernel() {
        let before = ThreadCounters::read();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let cost = ThreadCounters::read().since(before);
        assert!(cost.sleeps.is_some_and(|sleeps| sleeps >= 1), "{cost:?}");
        assert!(!allowed_cpus().is_empty());
    }
}
