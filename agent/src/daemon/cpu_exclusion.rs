//! Keeps the daemon's threads away from the processor of LoadGen's issuing thread.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Excludes a processor for the calling thread of the daemon until dropped.
#[derive(Debug)]
pub(crate) struct CpuExclusion {
    cpu: u32,
    before: CpuSet,
}

impl CpuExclusion {
    /// Excludes the processor. Returns `None` if there is no other processor or the kernel refuses.
    pub(crate) fn from(cpu: usize) -> Option<Self> {
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

    /// Returns the excluded processor.
    pub(crate) const fn cpu(&self) -> u32 {
        self.cpu
    }
}

impl Drop for CpuExclusion {
    fn drop(&mut self) {
        // The kernel allowed this set before. An error cannot be handled here.
        let _ = sched_setaffinity(None, &self.before);
    }
}
