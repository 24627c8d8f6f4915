//! The clock that measures latencies: monotonic, in nanoseconds. The official LoadGen uses the system clock, which a time server may set
//! during a run.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns the current time.
#[inline]
pub(super) fn now_ns() -> i64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

#[inline]
const fn to_ns(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Converts a time of the clock to the system's type.
pub(super) const fn to_timespec(ns: i64) -> Timespec {
    Timespec {
        tv_sec: ns.div_euclid(1_000_000_000),
        tv_nsec: ns.rem_euclid(1_000_000_000),
    }
}
