//! The progress of a session while it runs: its checks, its steps, and the mean power of every ten seconds. This module prints nothing.

use std::time::{Duration, Instant};

use regatta_power::session::{SessionEvent, SessionPhase};

use super::{preflight::PreflightResult, session_times::SessionTimes};
use regatta_lab_store::{RunDraft, StoreError};

/// The time whose samples have one mean.
const INTERVAL: Duration = Duration::from_secs(10);

/// News of a session.
pub enum SessionNews<'a> {
    /// The lease of an earlier session, whose process is gone, has ended.
    LeaseTakenOver {
        /// The earlier session.
        session: &'a str,
        meter: &'a str,
    },
    /// The checks before the session.
    Preflight(&'a PreflightResult),
    /// The session begins.
    Begins {
        /// Its id.
        session: &'a str,
        /// The run that is made twice.
        draft: &'a RunDraft,
        /// Whether Regatta's own programs make it.
        informative: bool,
    },
    /// It entered a step.
    Step {
        /// The step.
        phase: SessionPhase,
        /// The least time to the session's end.
        left: Duration,
    },
    /// The mean of the newest samples.
    Mean {
        /// Watts.
        watts: f64,
        samples: usize,
    },
    /// Something was observed beside it.
    Observation(&'a str),
    /// The power of the board's rails cannot be read. The session is complete without it.
    RailsUnknown(&'a StoreError),
}

/// Takes the news of a session.
pub trait SessionProgress {
    /// Takes one.
    fn report(&mut self, news: &SessionNews<'_>);
}

/// Makes news of a session's events.
pub struct SessionTracker {
    reported: Instant,
    watts: Vec<f64>,
    run: Duration,
    times: SessionTimes,
}

impl SessionTracker {
    /// Begins to track. `run` is the least length of a run.
    pub fn new(run: Duration) -> Self {
        Self {
            reported: Instant::now(),
            watts: Vec::new(),
            run,
            times: SessionTimes::default(),
        }
    }

    /// Ends the tracking, and returns the times of the steps.
    pub fn end(mut self) -> SessionTimes {
        self.times.end();
        self.times
    }

    /// Takes an event, and reports what is new after it.
    pub fn take(&mut self, event: &SessionEvent, report: &mut dyn FnMut(&SessionNews<'_>)) {
        match *event {
            SessionEvent::Phase(phase) => {
                self.report_mean(report);
                self.times.enter(phase);
                let left = self.times.left(self.run).unwrap_or_default();
                report(&SessionNews::Step { phase, left });
            }
            SessionEvent::Watts(watts) => {
                self.watts.push(watts);
                if self.reported.elapsed() >= INTERVAL {
                    self.report_mean(report);
                }
            }
        }
    }

    fn report_mean(&mut self, report: &mut dyn FnMut(&SessionNews<'_>)) {
        self.reported = Instant::now();
        let samples = self.watts.len();
        if samples > 0 {
            let watts = self.watts.iter().sum::<f64>() / samples as f64;
            self.watts.clear();
            report(&SessionNews::Mean { watts, samples });
        }
    }
}

#[cfg(test)]
mod tests {
    use regatta_power::session::Part;

    use super::*;

    #[test]
    fn the_samples_of_a_step_are_reported_before_the_next_one() {
        let mut tracker = SessionTracker::new(Duration::from_secs(600));
        let mut reported = Vec::new();
        for event in [
            SessionEvent::Phase(SessionPhase::Workload(Part::Testing)),
            SessionEvent::Watts(10.0),
            SessionEvent::Watts(20.0),
            SessionEvent::Phase(SessionPhase::After(Part::Testing)),
        ] {
            tracker.take(&event, &mut |news| {
                reported.push(match news {
                    SessionNews::Step { phase, left } => format!("{phase}, {} s left", left.as_secs()),
                    SessionNews::Mean { watts, samples } => format!("{watts} W of {samples}"),
                    _ => String::new(),
                });
            });
        }
        assert_eq!(
            reported,
            [
                "testing: the workload runs, 610 s left",
                "15 W of 2",
                "testing: the meter settles for 10 s and is read, 10 s left"
            ]
        );
        assert_eq!(tracker.end().steps().len(), 2);
    }
}
