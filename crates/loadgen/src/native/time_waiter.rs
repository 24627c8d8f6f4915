//! Waiting of Server's issuing thread until a query is due: few wake-ups, each of them on time. It does not know the queries.

use std::hint::spin_loop;

use rustix::{thread::clock_nanosleep_absolute, time::ClockId};

use super::clock::{now_ns, to_timespec};
use crate::request::{IssueSettings, Wait};

/// How long a query may wait for later ones, so that one wake-up serves them all. A wake-up costs many times more than issuing a query
/// (docs/METHODOLOGY.md). The official LoadGen sleeps with Linux's default timer slack, so each query waits 50 us.
const SHARED_WAKE_UP_NS: i64 = 40_000;
/// Longest single sleep; between sleeps the thread checks whether the run must end.
const MAX_SLEEP_NS: i64 = 50_000_000;
/// Largest reduction of a sleep. The remaining time is spun, which costs processor time.
const MAX_LEAD_NS: i64 = 20_000;
/// Adjustment of the lead per late wake-up.
const LEAD_STEP_NS: i64 = 100;
/// One in this many wake-ups may be early.
const EARLY_ONE_IN: i64 = 10;

/// Waits until points in time of the monotonic clock.
#[derive(Debug)]
pub(super) struct TimeWaiter {
    wait: Wait,
    /// How much earlier than due the thread sets its timer, because most wake-ups are late by at least that much.
    lead_ns: i64,
}

impl TimeWaiter {
    pub(super) fn new(settings: &IssueSettings) -> Self {
        Self {
            wait: settings.wait,
            lead_ns: 0,
        }
    }

    /// Returns the interval after a query in which other queries are issued at the same wake-up.
    pub(super) const fn shared_wake_up_ns(&self) -> i64 {
        match self.wait {
            Wait::Spin => 0,
            Wait::Block => SHARED_WAKE_UP_NS,
        }
    }

    /// Waits until `due_ns` and returns the current time. Ends early when `stop` returns true.
    #[inline]
    pub(super) fn until(&mut self, due_ns: i64, stop: impl Fn() -> bool) -> i64 {
        loop {
            let now = now_ns();
            if now >= due_ns || stop() {
                return now;
            }
            let wake_ns = (due_ns - self.lead_ns).min(now.saturating_add(MAX_SLEEP_NS));
            if self.wait == Wait::Spin || wake_ns <= now {
                spin_loop();
            } else {
                // An interrupted sleep ends early; the loop then checks the clock again.
                let _ = clock_nanosleep_absolute(ClockId::Monotonic, &to_timespec(wake_ns));
                self.learn(now_ns() - wake_ns);
            }
        }
    }

    /// Moves the lead towards the lateness that one wake-up in [`EARLY_ONE_IN`] stays below.
    fn learn(&mut self, late_ns: i64) {
        let step = if late_ns > self.lead_ns {
            LEAD_STEP_NS
        } else {
            -LEAD_STEP_NS * (EARLY_ONE_IN - 1)
        };
        self.lead_ns = (self.lead_ns + step).clamp(0, MAX_LEAD_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter() -> TimeWaiter {
        TimeWaiter::new(&IssueSettings::default())
    }

    #[test]
    fn the_lead_is_what_few_wake_ups_fall_short_of() {
        let mut waiter = waiter();
        let (mut early, mut leads) = (0, 0);
        const ROUNDS: i64 = 10_000;
        for round in -ROUNDS..ROUNDS {
            // Evenly distributed from 5 to 15 us, in no order.
            let late_ns = 5_000 + (round * round * 7_919 + round * 104_729).rem_euclid(10_007);
            if round >= 0 {
                early += i64::from(late_ns <= waiter.lead_ns);
                leads += waiter.lead_ns;
            }
            waiter.learn(late_ns);
        }
        let (early, lead_ns) = (early * 100 / ROUNDS, leads / ROUNDS);
        assert!((8..=12).contains(&early), "{early} percent were early");
        assert!((5_000..7_000).contains(&lead_ns), "{lead_ns}");
    }

    #[test]
    fn lead_time_of_spinning_is_bounded() {
        let mut waiter = waiter();
        (0..10_000).for_each(|_| waiter.learn(i64::MAX / 2));
        assert_eq!(waiter.lead_ns, MAX_LEAD_NS);
        (0..10_000).for_each(|_| waiter.learn(-1));
        assert_eq!(waiter.lead_ns, 0);
    }

    #[test]
    fn waiting_never_ends_before_the_requested_time() {
        for wait in [Wait::Block, Wait::Spin] {
            let mut waiter = TimeWaiter {
                wait,
                lead_ns: MAX_LEAD_NS,
            };
            for ahead_ns in [-5_000, 0, 1_000, 15_000, 100_000, 1_000_000] {
                let due_ns = now_ns() + ahead_ns;
                assert!(waiter.until(due_ns, || false) >= due_ns);
            }
            assert!(waiter.until(i64::MAX, || true) < i64::MAX);
        }
    }
}
