//! Tells of a session while it goes on: its steps, and the mean power of every ten seconds.

use std::time::{Duration, Instant};

use regatta_power::session::{SessionError, SessionEvent};

use super::super::context::tell;
use crate::exit::Failure;

/// The time whose samples are printed together.
const INTERVAL: Duration = Duration::from_secs(10);

/// Prints a session's events on standard error.
pub(super) struct SessionReporter {
    begun: Instant,
    reported: Instant,
    watts: Vec<f64>,
    remark: &'static str,
}

impl SessionReporter {
    /// Creates one that puts a remark behind every figure.
    pub(super) fn new(remark: &'static str) -> Self {
        Self {
            begun: Instant::now(),
            reported: Instant::now(),
            watts: Vec::new(),
            remark,
        }
    }

    /// Tells of an event.
    pub(super) fn report(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::Phase(phase) => {
                self.report_watts();
                self.print(&phase.to_string());
            }
            SessionEvent::Watts(watts) => {
                self.watts.push(*watts);
                if self.reported.elapsed() >= INTERVAL {
                    self.report_watts();
                }
            }
        }
    }

    fn report_watts(&mut self) {
        self.reported = Instant::now();
        let count = self.watts.len();
        if count > 0 {
            let mean = self.watts.iter().sum::<f64>() / count as f64;
            self.watts.clear();
            self.print(&format!(
                "  {mean:.2} W, the mean of {count} samples {}",
                self.remark
            ));
        }
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
            let hint = failed.hint;
            Failure::could_not(failed).hint(hint)
        }
        error @ SessionError::Uncollected { .. } => {
            Failure::from(error).hint("`regatta power fetch last` fetches them once the machine answers")
        }
        error => Failure::from(error),
    }
}
