//! Watches the wall clock for steps. A deadline is a wall time, and what follows from a passed one is not undone by itself: one wrong reading,
//! such as before the first answer of a time server, must not count.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// The time for which the wall clock must run with the monotonic one before a passed deadline counts. A person or a time server corrects a
/// wrong clock within this time.
const STEADY: Duration = Duration::from_secs(300);
/// The largest difference between the two clocks that is not a step. Time servers slew a clock by up to 0.5 ms per second.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(2);

/// The current time by both clocks. Absences are measured by the monotonic one; deadlines are wall times, which [`ClockSteps`] checks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// The monotonic clock.
    pub(super) instant: Instant,
    /// The wall clock.
    pub(super) wall: Timestamp,
}

impl Now {
    /// Reads both clocks.
    pub(super) fn read() -> Self {
        Self {
            instant: Instant::now(),
            wall: Timestamp::now(),
        }
    }
}

/// The steps of the wall clock, as this scheduler has seen them.
#[derive(Debug, Default)]
pub(super) struct ClockSteps {
    last: Option<Now>,
    /// The time of the last step, or of the first reading.
    steady_since: Option<Instant>,
}

/// What the clocks say about a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeadlineState {
    /// It has not passed.
    Ahead,
    /// The wall clock says that it has passed, but has been stepped or not been watched for long. No attempt begins, and nothing is given up.
    Unconfirmed,
    Passed,
}

impl ClockSteps {
    pub(super) const fn new() -> Self {
        Self {
            last: None,
            steady_since: None,
        }
    }

    /// Notes a reading of both clocks.
    pub(super) fn note(&mut self, now: Now) {
        let is_step = self.last.is_none_or(|last| {
            let elapsed = now.instant.saturating_duration_since(last.instant);
            let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
            (now.wall.duration_since(last.wall) - elapsed).abs() > TOLERANCE
        });
        if is_step {
            self.steady_since = Some(now.instant);
        }
        self.last = Some(now);
    }

    /// Returns whether a deadline has passed.
    pub(super) fn state_of(&self, deadline: Timestamp, now: Now) -> DeadlineState {
        if deadline > now.wall {
            return DeadlineState::Ahead;
        }
        let steady = self.steady_since.map_or(Duration::ZERO, |since| {
            now.instant.saturating_duration_since(since)
        });
        if steady >= STEADY {
            DeadlineState::Passed
        } else {
            DeadlineState::Unconfirmed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_by_a_steady_clock_only() {
        let begin = Now {
            instant: Instant::now(),
            wall: "2026-11-27T18:00:00Z".parse().unwrap(),
        };
        let deadline = "2026-11-27T19:00:00Z".parse().unwrap();
        let at = |seconds: i64, step: i64| Now {
            instant: begin.instant + Duration::from_secs(seconds.unsigned_abs()),
            wall: begin.wall + SignedDuration::from_secs(seconds + step),
        };
        let mut clock = ClockSteps::new();
        let mut state = |now| {
            clock.note(now);
            clock.state_of(deadline, now)
        };
        for second in 0..400 {
            assert_eq!(state(at(second, 0)), DeadlineState::Ahead);
        }
        // One wrong reading, a clock that stays wrong for a minute, and the time after each.
        assert_eq!(state(at(400, 86_400)), DeadlineState::Unconfirmed);
        assert_eq!(state(at(401, 0)), DeadlineState::Ahead);
        for second in 402..462 {
            assert_eq!(state(at(second, 86_400)), DeadlineState::Unconfirmed);
        }
        for second in 462..3_600 {
            assert_eq!(state(at(second, 0)), DeadlineState::Ahead, "{second}");
        }
        assert_eq!(
            state(at(3_600, 0)),
            DeadlineState::Passed,
            "as stated, to the second"
        );
        // A suspended machine: the monotonic clock does not count that time.
        for second in 3_601..3_901 {
            assert_eq!(state(at(second, 3_600)), DeadlineState::Unconfirmed);
        }
        assert_eq!(state(at(3_901, 3_600)), DeadlineState::Passed);
    }
}
