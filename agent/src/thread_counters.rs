//! What the kernel counts of a thread: how often it went to sleep, was put aside, was moved to another processor. Read at
//! both ends of the timed window, never in it.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity};

/// The calling thread's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThreadCounters {
    /// Times that it went to sleep by itself, and was woken later.
    pub(crate) sleeps: Option<u64>,
    /// Times that another thread took its processor.
    pub(crate) preemptions: Option<u64>,
    /// Times that it was moved to another processor. Not every kernel tells.
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

    /// What was added since an earlier reading.
    pub(crate) fn since(self, earlier: Self) -> Self {
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            sleeps: since(self.sleeps, earlier.sleeps),
            preemptions: since(self.preemptions, earlier.preemptions),
            migrations: since(self.migrations, earlier.migrations),
        }
    }
}

/// The number behind `key` and a colon.
fn number(text: &str, key: &str) -> Option<u64> {
    let behind = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    text.lines().find_map(behind)?.parse().ok()
}

/// The processors that the calling thread may use, lowest first.
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
    fn this_kernel_tells_of_this_thread() {
        let before = ThreadCounters::read();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let cost = ThreadCounters::read().since(before);
        assert!(cost.sleeps.is_some_and(|sleeps| sleeps >= 1), "{cost:?}");
        assert!(!allowed_cpus().is_empty());
    }
}
