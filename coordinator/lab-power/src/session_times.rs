//! The times of a session's steps, as they happened, and the time of the testing part's runs beside LoadGen's measured window.

use std::time::{Duration, Instant};

use regatta_power::session::{Part, SessionPhase};
use regatta_types::documents::SessionStep;

/// The steps of a session so far.
#[derive(Debug, Default)]
pub struct SessionTimes {
    steps: Vec<(SessionPhase, Instant)>,
    ended: Option<Instant>,
}

impl SessionTimes {
    /// Begins a step.
    pub fn enter(&mut self, phase: SessionPhase) {
        self.steps.push((phase, Instant::now()));
    }

    /// Ends the session.
    pub fn end(&mut self) {
        self.ended = Some(Instant::now());
    }

    /// Returns the length of a step that has ended.
    fn length(&self, of: SessionPhase) -> Option<Duration> {
        let at = self.steps.iter().position(|(phase, _)| *phase == of)?;
        let (_, begun) = self.steps.get(at)?;
        let end = self.steps.get(at + 1).map(|(_, next)| *next).or(self.ended)?;
        Some(end.saturating_duration_since(*begun))
    }

    /// Returns the least time from the newest step's beginning to the session's end. `run` is the requested length of a run; the ranging
    /// run shows the real one.
    pub fn left(&self, run: Duration) -> Option<Duration> {
        let (phase, _) = self.steps.last()?;
        let run = self
            .length(SessionPhase::Workload(Part::Ranging))
            .map_or(run, |real| real.max(run));
        Some(phase.time_left(run))
    }

    /// Returns the seconds of the testing workload beside LoadGen's measured window: the request, loading, delivery and the logs.
    pub fn beside(&self, window_s: f64) -> Option<f64> {
        let whole = self.length(SessionPhase::Workload(Part::Testing))?;
        Some(whole.as_secs_f64() - window_s)
    }

    /// Returns the steps with their lengths.
    pub fn steps(&self) -> Vec<SessionStep> {
        let step = |(phase, _): &(SessionPhase, Instant)| SessionStep {
            step: phase.to_string(),
            seconds: self
                .length(*phase)
                .map(|length| (length.as_secs_f64() * 1e3).round() / 1e3),
        };
        self.steps.iter().map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_ranging_run() {
        let mut times = SessionTimes::default();
        let run = Duration::from_secs(600);
        assert_eq!(times.left(run), None);
        times.enter(SessionPhase::Connecting);
        assert_eq!(times.left(run), Some(Duration::from_secs(1240)));
        times.enter(SessionPhase::Workload(Part::Ranging));
        times.enter(SessionPhase::After(Part::Ranging));
        // The ranging run took less than was requested, as in this test.
        assert_eq!(times.left(run), Some(Duration::from_secs(630)));
        times.enter(SessionPhase::Workload(Part::Testing));
        assert_eq!(times.beside(0.0), None, "it has not ended");
        times.end();
        assert!(times.beside(0.0).is_some_and(|seconds| seconds < 1.0));
        assert_eq!(times.steps().len(), 4);
    }
}
