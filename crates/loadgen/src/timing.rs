//! The thread that measures time: its requested settings, how they are applied, and how the thread actually ran.
//!
//! A run needs none of these settings. A thread that is migrated or preempted still measures, only with more variation. The run therefore
//! continues without the settings that the system refuses, and reports them.

use std::{io, marker::PhantomData, mem};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Requested settings of a timing thread, besides how it waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimingRequest {
    /// The processor to pin the thread to.
    pub cpu: Option<usize>,
    /// The real-time priority, 1 to 99 (`SCHED_FIFO`).
    pub realtime_priority: Option<u8>,
}

/// How a timing thread ran, whether Regatta or its environment set it up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timing {
    /// The processor that it was pinned to; `None` when several were allowed.
    pub cpu: Option<usize>,
    /// Its real-time priority (`SCHED_FIFO` or `SCHED_RR`); `None` under ordinary scheduling.
    pub realtime_priority: Option<u8>,
    /// The requests that failed, as text, with the system's reason.
    pub refused: Vec<String>,
}

/// Guard that makes the calling thread a timing thread. Dropping it on the same thread restores the previous settings.
#[derive(Debug)]
pub struct TimingThread {
    cpus_before: Option<CpuSet>,
    scheduling_before: Option<Scheduling>,
    /// The previous settings belong to one thread, so the guard is not `Send`.
    not_send: PhantomData<*const ()>,
}

impl TimingThread {
    /// Applies the request to the calling thread as far as the system allows, and returns how the thread now runs.
    ///
    /// Threads that it starts inherit the processor, as usual on Linux, but not the real-time priority. An engine that starts its workers
    /// late must not get real-time workers.
    #[must_use = "the thread runs as before once this is dropped"]
    pub fn enter(request: &TimingRequest) -> (Self, Timing) {
        let mut refused = Vec::new();
        let mut taken = |what: &str, result: io::Result<()>| {
            if let Err(reason) = &result {
                refused.push(format!("The timing thread {what}: {reason}"));
            }
            result.is_ok()
        };
        let cpus_before = request.cpu.and_then(|cpu| {
            let before = sched_getaffinity(None).ok();
            before.filter(|_| taken("could not be pinned to a processor", pin(cpu)))
        });
        let scheduling_before = request.realtime_priority.and_then(|priority| {
            let before = Scheduling::now().ok();
            let requested = Scheduling {
                policy: libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
                priority: priority.into(),
            };
            before.filter(|_| taken("did not get a real-time priority", requested.set()))
        });
        let thread = Self {
            cpus_before,
            scheduling_before,
            not_send: PhantomData,
        };
        (
            thread,
            Timing {
                refused,
                ..Timing::of_this_thread()
            },
        )
    }
}

impl Drop for TimingThread {
    fn drop(&mut self) {
        // Both settings were valid before; there is no remedy if the system refuses them now.
        if let Some(before) = self.scheduling_before {
            let _ = before.put_back();
        }
        if let Some(before) = &self.cpus_before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

impl Timing {
    /// Returns how the calling thread runs. A value that the system does not report counts as ordinary.
    #[must_use]
    pub fn of_this_thread() -> Self {
        let cpus = sched_getaffinity(None).ok().filter(|cpus| cpus.count() == 1);
        let realtime = |s: &Scheduling| matches!(s.policy(), libc::SCHED_FIFO | libc::SCHED_RR);
        let scheduling = Scheduling::now().ok().filter(realtime);
        Self {
            cpu: cpus.and_then(|cpus| (0..CpuSet::MAX_CPU).find(|&cpu| cpus.is_set(cpu))),
            realtime_priority: scheduling.and_then(|s| u8::try_from(s.priority).ok()),
            refused: Vec::new(),
        }
    }
}

fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::other(format!("there is no processor {cpu}")));
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}

/// A thread's scheduling policy with its flags, and its priority.
#[derive(Debug, Clone, Copy)]
struct Scheduling {
    policy: i32,
    priority: i32,
}

impl Scheduling {
    /// Returns the calling thread's scheduling.
    fn now() -> io::Result<Self> {
        // SAFETY: plain integers, for which all bit patterns are valid; the call below fills them in.
        let mut param: libc::sched_param = unsafe { mem::zeroed() };
        // SAFETY: 0 is the calling thread, and `param` outlives the call.
        let (policy, got) = unsafe { (libc::sched_getscheduler(0), libc::sched_getparam(0, &mut param)) };
        if policy < 0 || got < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            policy,
            priority: param.sched_priority,
        })
    }

    /// Applies the scheduling to the calling thread.
    fn set(self) -> io::Result<()> {
        // SAFETY: as in `now`.
        let mut param: libc::sched_param = unsafe { mem::zeroed() };
        param.sched_priority = self.priority;
        // SAFETY: 0 is the calling thread, and `param` outlives the call.
        match unsafe { libc::sched_setscheduler(0, self.policy, &param) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Restores the scheduling. An unprivileged thread may not clear the reset-on-fork flag; the flag then stays.
    fn put_back(self) -> io::Result<()> {
        self.set().or_else(|_| {
            Self {
                policy: self.policy | libc::SCHED_RESET_ON_FORK,
                ..self
            }
            .set()
        })
    }

    /// Returns the policy without its flags.
    const fn policy(self) -> i32 {
        self.policy & !libc::SCHED_RESET_ON_FORK
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn any_cpu() -> usize {
        let cpus = sched_getaffinity(None).unwrap();
        (0..CpuSet::MAX_CPU).rfind(|&cpu| cpus.is_set(cpu)).unwrap()
    }

    #[test]
    fn a_thread_is_pinned_and_freed() {
        let before = Timing::of_this_thread();
        let request = TimingRequest {
            cpu: Some(any_cpu()),
            ..TimingRequest::default()
        };
        let (thread, timing) = TimingThread::enter(&request);
        assert_eq!((timing.cpu, timing.refused.len()), (request.cpu, 0));
        drop(thread);
        assert_eq!(Timing::of_this_thread(), before);
    }

    #[test]
    fn requests_that_fail_are_reported_and_change_nothing() {
        let before = Timing::of_this_thread();
        for cpu in [CpuSet::MAX_CPU - 1, usize::MAX] {
            let request = TimingRequest {
                cpu: Some(cpu),
                realtime_priority: Some(0),
            };
            let (thread, timing) = TimingThread::enter(&request);
            assert_eq!(timing.refused.len(), 2, "{timing:?}");
            assert!(
                timing.refused[0].starts_with("The timing thread could not be pinned"),
                "{timing:?}"
            );
            assert!(
                timing.refused[1].contains("did not get a real-time priority: Invalid argument"),
                "{timing:?}"
            );
            drop(thread);
        }
        assert_eq!(Timing::of_this_thread(), before);
    }

    /// The machine may allow or refuse the request. Both are reported, and dropping the guard ends both.
    #[test]
    fn a_real_time_priority_is_had_or_refused_and_never_inherited() {
        let before = Timing::of_this_thread();
        let request = TimingRequest {
            cpu: None,
            realtime_priority: Some(3),
        };
        let (guard, timing) = TimingThread::enter(&request);
        if timing.refused.is_empty() {
            assert_eq!(timing.realtime_priority, Some(3));
        } else {
            println!("left out: {:?}", timing.refused);
            assert_eq!(timing.realtime_priority, before.realtime_priority);
        }
        let child = thread::spawn(Timing::of_this_thread).join().unwrap();
        assert_eq!(child.realtime_priority, None);
        drop(guard);
        assert_eq!(Timing::of_this_thread(), before);
    }
}
