//! The schedule for retrying failed work: after a first pause, then after twice the last pause, up to a minute. One item's failures do not
//! delay the others. It does no work and sets no timer.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The next attempt for each failed item.
#[derive(Debug)]
pub(super) struct RetrySchedule<K> {
    first_pause: Duration,
    failed: BTreeMap<K, NextAttempt>,
}

#[derive(Debug)]
struct NextAttempt {
    at: Instant,
    pause: Duration,
}

impl<K> Default for RetrySchedule<K> {
    fn default() -> Self {
        Self::with_first_pause(FIRST_PAUSE)
    }
}

impl<K> RetrySchedule<K> {
    /// Creates an empty schedule.
    pub(super) const fn with_first_pause(first_pause: Duration) -> Self {
        Self {
            first_pause,
            failed: BTreeMap::new(),
        }
    }
}

impl<K: Ord> RetrySchedule<K> {
    /// Returns whether an item may be tried now: it has not failed, or its pause is over.
    pub(super) fn is_due(&self, item: &K, now: Instant) -> bool {
        self.failed.get(item).is_none_or(|next| now >= next.at)
    }

    /// Records a failure and returns the pause until the next attempt.
    pub(super) fn failed(&mut self, item: K, now: Instant) -> Duration {
        let pause = match self.failed.get(&item) {
            Some(last) => last.pause.saturating_mul(2).min(MAX_PAUSE),
            None => self.first_pause,
        };
        let at = now + pause;
        self.failed.insert(item, NextAttempt { at, pause });
        pause
    }

    /// Removes an item's failures.
    pub(super) fn succeeded(&mut self, item: &K) {
        self.failed.remove(item);
    }

    /// Removes the items for which `is_open` returns `false`.
    pub(super) fn retain(&mut self, is_open: impl Fn(&K) -> bool) {
        self.failed.retain(|item, _| is_open(item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_begin_again_after_a_success() {
        let mut schedule = RetrySchedule::default();
        let begin = Instant::now();
        assert!(schedule.is_due(&"run", begin));
        let pauses: Vec<u64> = (0..8).map(|_| schedule.failed("run", begin).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(!schedule.is_due(&"run", begin + Duration::from_secs(59)));
        assert!(schedule.is_due(&"run", begin + Duration::from_secs(60)));
        assert!(schedule.is_due(&"another", begin));
        schedule.succeeded(&"run");
        assert!(schedule.is_due(&"run", begin));
        assert_eq!(schedule.failed("run", begin), FIRST_PAUSE);
        schedule.retain(|_| false);
        assert!(schedule.is_due(&"run", begin));
    }
}
