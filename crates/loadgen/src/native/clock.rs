//! The clock that latencies are measured with: monotonic, in nanoseconds. The official LoadGen's is the system clock,
//! which a time server may set while a run is on.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Now.
#[inline]
pub(super) fn now_ns() -> i64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

#[inline]
const fn to_ns(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A moment of the clock, as the system takes it.
pub(super) const fn to_timespec(ns: i64) -> Timespec {
    Timespec {
        tv_sec: ns.div_euclid(1_000_000_000),
        tv_nsec: ns.rem_euclid(1_000_000_000),
    }
}
