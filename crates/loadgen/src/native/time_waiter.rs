//! How Server's issuing thread waits for a query's time: few wake-ups, each of them on time. What it waits for is not its
//! business.

use std::hint::spin_loop;

use rustix::{thread::clock_nanosleep_absolute, time::ClockId};

use super::clock::{now_ns, to_timespec};
use crate::request::{IssueSettings, Wait};

/// A query may wait so long for those behind it, so that one wake-up serves them all: a wake-up costs many times what issuing
/// a query does (docs/METHODOLOGY.md). The official LoadGen sleeps with Linux's own timer slack, so each query waits 50 us.
const SHARED_WAKE_UP_NS: i64 = 40_000;
/// A sleep is cut into pieces of this length, to notice that the run must end.
const LONGEST_SLEEP_NS: i64 = 50_000_000;
/// The most by which a sleep is made shorter. What is slept too little is spun, and spinning costs processor time.
const MOST_LEAD_NS: i64 = 20_000;
/// How quickly the lead follows.
const LEAD_STEP_NS: i64 = 100;
/// One wake-up in so many comes early.
const EARLY_ONE_IN: i64 = 10;

/// Waits for moments of the clock.
#[derive(Debug)]
pub(super) struct TimeWaiter {
    wait: Wait,
    /// How much earlier than wanted the thread asks to be woken, because wake-ups are late by at least that.
    lead_ns: i64,
}

impl TimeWaiter {
    pub(super) fn new(settings: &IssueSettings) -> Self {
        Self {
            wait: settings.wait,
            lead_ns: 0,
        }
    }

    /// How long after a query others may be due that are issued at the same wake-up.
    pub(super) const fn shared_wake_up_ns(&self) -> i64 {
        match self.wait {
            Wait::Spin => 0,
            Wait::Block => SHARED_WAKE_UP_NS,
        }
    }

    /// Waits for a moment of the clock and returns the time then. Ends early when `stop` holds.
    #[inline]
    pub(super) fn until(&mut self, due_ns: i64, stop: impl Fn() -> bool) -> i64 {
        loop {
            let now = now_ns();
            if now >= due_ns || stop() {
                return now;
            }
            let wake_ns = (due_ns - self.lead_ns).min(now.saturating_add(LONGEST_SLEEP_NS));
            if self.wait == Wait::Spin || wake_ns <= now {
                spin_loop();
            } else {
                // An interrupted sleep ends early; the loop looks at the clock again anyway.
                let _ = clock_nanosleep_absolute(ClockId::Monotonic, &to_timespec(wake_ns));
                self.learn(now_ns() - wake_ns);
            }
        }
    }

    /// Moves the lead towards what one wake-up in [`EARLY_ONE_IN`] falls short of.
    fn learn(&mut self, late_ns: i64) {
        let step = if late_ns > self.lead_ns {
            LEAD_STEP_NS
        } else {
            -LEAD_STEP_NS * (EARLY_ONE_IN - 1)
        };
        self.lead_ns = (self.lead_ns + step).clamp(0, MOST_LEAD_NS);
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
            // From 5 to 15 us, evenly and in no order.
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
    fn a_slow_machine_makes_nobody_spin_for_long() {
        let mut waiter = waiter();
        (0..10_000).for_each(|_| waiter.learn(i64::MAX / 2));
        assert_eq!(waiter.lead_ns, MOST_LEAD_NS);
        (0..10_000).for_each(|_| waiter.learn(-1));
        assert_eq!(waiter.lead_ns, 0);
    }

    #[test]
    fn nobody_returns_before_the_time() {
        for wait in [Wait::Block, Wait::Spin] {
            let mut waiter = TimeWaiter {
                wait,
                lead_ns: MOST_LEAD_NS,
            };
            for ahead_ns in [-5_000, 0, 1_000, 15_000, 100_000, 1_000_000] {
                let due_ns = now_ns() + ahead_ns;
                assert!(waiter.until(due_ns, || false) >= due_ns);
            }
            assert!(waiter.until(i64::MAX, || true) < i64::MAX);
        }
    }
}
