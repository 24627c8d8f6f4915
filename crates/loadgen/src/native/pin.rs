//! Keeps the issuing thread on one processor for as long as time is measured.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Puts the thread's former processors back when dropped.
pub(super) struct Pinned(CpuSet);

impl Pinned {
    /// Pins the calling thread.
    pub(super) fn to(cpu: usize) -> Result<Self, String> {
        let before = sched_getaffinity(None).map_err(|error| error.to_string())?;
        if cpu >= CpuSet::MAX_CPU {
            return Err(format!("there is no processor {cpu}"));
        }
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only).map_err(|error| error.to_string())?;
        Ok(Self(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // They were allowed a moment ago; there is nothing to do about a refusal.
        let _ = sched_setaffinity(None, &self.0);
    }
}
