//! Measures how long the machine takes to put a thread to sleep and to wake it: the cost of each query that is waited for alone.

use rustix::{
    thread::{clock_nanosleep_absolute, set_current_timer_slack},
    time::{ClockId, Timespec, clock_gettime},
};

/// The length of each sleep, about as long as Server's at 20,000 queries/s.
const SLEEP_NS: i64 = 50_000;
const SLEEPS: i64 = 10_000;

fn ns(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Returns the processor time in ns of a sleep, its wake-up, and a read of the clock.
pub(crate) fn cpu_ns() -> i64 {
    // A refusal makes the sleeps longer and costs nothing.
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
    let before = ns(ClockId::ThreadCPUTime);
    for _ in 0..SLEEPS {
        let until = ns(ClockId::Monotonic) + SLEEP_NS;
        let until = Timespec {
            tv_sec: until / 1_000_000_000,
            tv_nsec: until % 1_000_000_000,
        };
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
    }
    (ns(ClockId::ThreadCPUTime) - before) / SLEEPS
}
