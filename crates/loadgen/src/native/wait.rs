//! Waiting of the issuing thread for responses, with a watchdog.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, Thread},
    time::Duration,
};

use super::clock::now_ns;
use crate::request::{IssueSettings, Wait};

/// Wakes the issuing thread from responding threads. While the issuing thread is awake, it costs them only a load.
#[derive(Debug)]
pub(super) struct IssuerWaker {
    issuer: Thread,
    asleep: AtomicBool,
}

impl IssuerWaker {
    /// Creates a waker of the current thread.
    pub(super) fn for_this_thread() -> Self {
        Self {
            issuer: thread::current(),
            asleep: AtomicBool::new(false),
        }
    }

    /// Wakes the issuing thread. The awaited value must have been stored before, with sequential consistency.
    #[inline]
    pub(super) fn ring(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            self.issuer.unpark();
        }
    }
}

/// The error when no response arrived in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stalled;

/// Waits for responses as the settings specify.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiter {
    wait: Wait,
    stall_ns: Option<i64>,
}

impl Waiter {
    pub(super) fn new(settings: &IssueSettings) -> Self {
        let ns = |timeout: Duration| i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
        Self {
            wait: settings.wait,
            stall_ns: settings.stall_timeout.map(ns),
        }
    }

    /// Waits until `done` returns true. Gives up when `progress` has not changed for the stall timeout.
    #[inline]
    pub(super) fn until(
        &self,
        waker: &IssuerWaker,
        done: impl Fn() -> bool,
        progress: impl Fn() -> u64,
    ) -> Result<(), Stalled> {
        if done() {
            return Ok(());
        }
        match self.wait {
            Wait::Block => self.block_until(waker, done, progress),
            Wait::Spin => self.spin_until(done, progress),
        }
    }

    fn block_until(
        &self,
        waker: &IssuerWaker,
        done: impl Fn() -> bool,
        progress: impl Fn() -> u64,
    ) -> Result<(), Stalled> {
        waker.asleep.store(true, Ordering::SeqCst);
        let mut watchdog = Watchdog::new(self.stall_ns, progress);
        let result = loop {
            if done() {
                break Ok(());
            }
            match watchdog.time_left() {
                None => thread::park(),
                Some(0) => break Err(Stalled),
                Some(left_ns) => thread::park_timeout(Duration::from_nanos(left_ns)),
            }
        };
        waker.asleep.store(false, Ordering::Relaxed);
        result
    }

    fn spin_until(&self, done: impl Fn() -> bool, progress: impl Fn() -> u64) -> Result<(), Stalled> {
        const TURNS: u32 = 1 << 14;
        let mut watchdog = Watchdog::new(self.stall_ns, progress);
        loop {
            for _ in 0..TURNS {
                if done() {
                    return Ok(());
                }
                spin_loop();
            }
            if watchdog.time_left() == Some(0) {
                return Err(Stalled);
            }
        }
    }
}

/// Detects missing progress.
struct Watchdog<P> {
    limit_ns: Option<i64>,
    progress: P,
    last: u64,
    since_ns: i64,
}

impl<P: Fn() -> u64> Watchdog<P> {
    fn new(limit_ns: Option<i64>, progress: P) -> Self {
        let last = progress();
        let since_ns = if limit_ns.is_some() { now_ns() } else { 0 };
        Self {
            limit_ns,
            progress,
            last,
            since_ns,
        }
    }

    /// Returns the nanoseconds until it gives up; `None` if it never does.
    fn time_left(&mut self) -> Option<u64> {
        let limit = self.limit_ns?;
        let (now, progress) = (now_ns(), (self.progress)());
        if progress != self.last {
            self.last = progress;
            self.since_ns = now;
        }
        let left = limit.saturating_sub(now - self.since_ns).max(0);
        Some(left.cast_unsigned())
    }
}
