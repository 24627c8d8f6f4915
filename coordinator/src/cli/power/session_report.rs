//! Reports the progress of a session and its failure: the wording and the exit codes of the command line.

use std::time::Instant;

use regatta_power::session::SessionError;
use regatta_text::ErrorChain;

use super::super::context::{notify, tell};
use crate::{exit::Failure, tables};
use regatta_lab_power::{PowerSessionError, SessionNews, SessionProgress, session_hint, words};

/// The sentence at the beginning of a session of Regatta's own programs.
const INFORMATIVE: &str =
    "INFORMATIVE: Regatta's own power programs make this session. It can never be submitted.";

/// Prints a session's news on standard error.
pub(super) struct SessionPrinter {
    begun: Instant,
    remark: &'static str,
}

impl SessionPrinter {
    /// Creates one that puts a remark behind every figure.
    pub(super) fn new(remark: &'static str) -> Self {
        Self {
            begun: Instant::now(),
            remark,
        }
    }

    fn print(&self, text: &str) {
        let seconds = self.begun.elapsed().as_secs();
        tell(&format!("{:>3}:{:02}  {text}", seconds / 60, seconds % 60));
    }
}

impl SessionProgress for SessionPrinter {
    fn report(&mut self, news: &SessionNews<'_>) {
        match news {
            SessionNews::LeaseTakenOver { session, meter } => tell(&format!(
                "session {session} ended without a result; its lease of {meter} has ended too"
            )),
            SessionNews::Preflight(result) => {
                // The lines are the reason when one of them has failed.
                let print = if result.passed() { tell } else { notify };
                print(&tables::preflight(&result.lines));
            }
            SessionNews::Begins {
                session,
                draft,
                informative,
            } => {
                self.begun = Instant::now();
                if *informative {
                    tell(INFORMATIVE);
                }
                let spec = &draft.spec;
                tell(&format!(
                    "session {session}: {} {}",
                    spec.benchmark.name, spec.scenario
                ));
            }
            SessionNews::Step { phase, left } if left.is_zero() => self.print(&phase.to_string()),
            SessionNews::Step { phase, left } => {
                self.print(&format!("{phase} (at least {} left)", words(*left)));
            }
            SessionNews::Mean { watts, samples } => self.print(&format!(
                "  {watts:.2} W, the mean of {samples} samples {}",
                self.remark
            )),
            SessionNews::Observation(text) => tell(text),
            SessionNews::RailsUnknown(error) => {
                notify(&format!("the rails' power is not known: {}", ErrorChain(*error)));
            }
        }
    }
}

/// Returns the failure of a session of the official programs, with its hint.
pub(super) fn failure(error: SessionError) -> Failure {
    let hint = session_hint(&error);
    Failure::from(error).optional_hint(hint)
}

/// Returns the failure of a session that could not begin or could not be recorded.
pub(super) fn session_failure(error: PowerSessionError) -> Failure {
    match error {
        PowerSessionError::Preflight(_) => {
            Failure::could_not("a session cannot succeed: see the lines above; nothing was started")
        }
        PowerSessionError::Cancelled(_) => Failure::interrupted("interrupted before the session began"),
        error => {
            let hint = error.hint();
            Failure::from(error).optional_hint(hint)
        }
    }
}
