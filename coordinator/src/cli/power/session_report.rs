//! Tells of a session while it goes on: its steps, and the mean power of every ten seconds.

use std::time::{Duration, Instant};

use regatta_power::session::{SessionError, SessionEvent};

use super::super::context::tell;
use crate::exit::Failure;
use regatta_lab_power::{SessionTimes, words};
use regatta_lab_store::PowerSessionChange;

/// The time whose samples are printed together.
const INTERVAL: Duration = Duration::from_secs(10);

/// What is new of a session.
pub(super) enum ReportedChange {
    /// It entered a step.
    Step(String),
    /// The mean of the newest samples.
    Watts(f64),
}

impl ReportedChange {
    /// The change as it is stored.
    pub(super) fn as_stored(&self) -> PowerSessionChange<'_> {
        match self {
            Self::Step(step) => PowerSessionChange::Step(step),
            Self::Watts(watts) => PowerSessionChange::Watts(*watts),
        }
    }
}

/// Prints a session's events on standard error.
pub(super) struct SessionReporter {
    begun: Instant,
    reported: Instant,
    watts: Vec<f64>,
    remark: &'static str,
    run: Duration,
    times: SessionTimes,
}

impl SessionReporter {
    /// Creates one that puts a remark behind every figure. `run` is the least length of a run.
    pub(super) fn new(remark: &'static str, run: Duration) -> Self {
        Self {
            begun: Instant::now(),
            reported: Instant::now(),
            watts: Vec::new(),
            remark,
            run,
            times: SessionTimes::default(),
        }
    }

    /// Ends the report, and returns the times of the steps.
    pub(super) fn end(mut self) -> SessionTimes {
        self.times.end();
        self.times
    }

    /// Tells of an event. Returns what is new after it.
    pub(super) fn report(&mut self, event: &SessionEvent) -> Option<ReportedChange> {
        match event {
            SessionEvent::Phase(phase) => {
                self.report_watts();
                let step = phase.to_string();
                self.times.enter(*phase);
                let left = self.times.left(self.run).unwrap_or_default();
                self.print(&match left.is_zero() {
                    true => step.clone(),
                    false => format!("{step} (at least {} left)", words(left)),
                });
                Some(ReportedChange::Step(step))
            }
            SessionEvent::Watts(watts) => {
                self.watts.push(*watts);
                let is_due = self.reported.elapsed() >= INTERVAL;
                is_due
                    .then(|| self.report_watts())
                    .flatten()
                    .map(ReportedChange::Watts)
            }
        }
    }

    fn report_watts(&mut self) -> Option<f64> {
        self.reported = Instant::now();
        let count = self.watts.len();
        if count == 0 {
            return None;
        }
        let mean = self.watts.iter().sum::<f64>() / count as f64;
        self.watts.clear();
        self.print(&format!(
            "  {mean:.2} W, the mean of {count} samples {}",
            self.remark
        ));
        Some(mean)
    }

    fn print(&self, text: &str) {
        let seconds = self.begun.elapsed().as_secs();
        tell(&format!("{:>3}:{:02}  {text}", seconds / 60, seconds % 60));
    }
}

/// A session's failure with its hint.
pub(super) fn failure(error: SessionError) -> Failure {
    match error {
        SessionError::Failed(failed) => {
            let hint = match failed.is_system_lost {
                true => format!(
                    "{}; if its client had only to finish, `regatta power fetch last` fetches the session once the machine answers",
                    failed.hint
                ),
                false => failed.hint.to_owned(),
            };
            Failure::could_not(failed).hint(hint)
        }
        error @ SessionError::Uncollected { .. } => {
            Failure::from(error).hint("`regatta power fetch last` fetches them once the machine answers")
        }
        error => Failure::from(error),
    }
}
