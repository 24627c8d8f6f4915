//! The Power working group's eleven checks of a measured session (`power_checker.py`), each with its own verdict.
//!
//! A session is the directory with `power/`, `ranging/` and `run_1/`. The values that depend on the round are data
//! ([`PowerRules`]). These checks do not prove that a meter was present, and neither does the official program.

mod check_failure;
mod commands;
mod contradictions;
mod energy;
mod overlooked;
mod own_programs;
mod phases;
mod ptd_log;
mod results;
pub(crate) mod samples;
mod session;
mod session_fault;
mod timeline;

use std::cell::RefCell;

pub use check_failure::CheckFailure;
pub use energy::energy;
pub use own_programs::{OWN_PROGRAMS, SOURCES, has_own_programs, with_any_meter};
pub use samples::PowerSample;
pub use session_fault::SessionFault;
pub use timeline::{PowerTimeline, timelines};

use regatta_catalogue::round::{PowerRules, SIMULATION_MARK};
use serde::Serialize;
pub(crate) use session::SessionLogs;
use session::{CheckResult, Session, SessionFinding};

use crate::tree::Tree;

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "lowercase")]
pub enum PowerOutcome {
    /// The check passed.
    Passed,
    /// The check passed with this warning for auditors.
    Warned(String),
    /// The check failed for this reason.
    Failed(String),
}

/// One check of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PowerCheck {
    /// The name that the official program uses.
    pub name: &'static str,
    #[serde(flatten)]
    pub outcome: PowerOutcome,
}

/// The checks of a session, in the official order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PowerReport {
    /// All checks. If the session's descriptions cannot be read, a single failed one, because the official program ends there.
    pub checks: Vec<PowerCheck>,
}

impl PowerReport {
    /// Returns whether every check passed, with or without a warning.
    #[must_use]
    pub fn passes(&self) -> bool {
        let failed = |check: &PowerCheck| matches!(check.outcome, PowerOutcome::Failed(_));
        !self.checks.iter().any(failed)
    }
}

/// Checks the session in `directory` of `tree` (`""` for the root), as the round's power checker does.
#[must_use]
pub fn check(tree: &Tree, directory: &str, rules: &PowerRules) -> PowerReport {
    match Session::read(tree, directory, rules, SessionLogs::default()) {
        Ok(session) => judge(&session),
        Err(reason) => unread(reason),
    }
}

/// Returns the faults of the session in `directory` of `tree` (`""` for the root) beyond the official checks.
#[must_use]
pub fn overlooked(tree: &Tree, directory: &str, rules: &PowerRules) -> Vec<SessionFault> {
    review(tree, directory, rules, SessionLogs::default()).1
}

/// Checks the session, and also returns the faults that the official checks overlook.
///
/// The official check of PTDaemon's log ends at its first warning and skips the run's first and last minutes.
pub(crate) fn review(
    tree: &Tree,
    directory: &str,
    rules: &PowerRules,
    known: SessionLogs<'_>,
) -> (PowerReport, Vec<SessionFault>) {
    match Session::read(tree, directory, rules, known) {
        Ok(mut session) => {
            session.overlooked = Some(RefCell::default());
            let report = judge(&session);
            let lines = session.overlooked.take().map(RefCell::into_inner);
            let faults = overlooked::faults(&session, lines.unwrap_or_default(), known);
            (report, faults)
        }
        Err(reason) => (unread(reason), Vec::new()),
    }
}

/// Returns whether the session was made with Regatta's simulated PTDaemon, which measures nothing. The official program accepts it.
#[must_use]
pub fn is_simulated(tree: &Tree, directory: &str) -> bool {
    let name = match directory {
        "" => "power/server.json".to_owned(),
        directory => format!("{directory}/power/server.json"),
    };
    let mark = SIMULATION_MARK.as_bytes();
    let bytes = tree.read(&name, session::MAX).unwrap_or_default();
    memchr::memmem::find(&bytes, mark).is_some()
}

fn unread(CheckFailure(reason): CheckFailure) -> PowerReport {
    let name = "Read client.json and server.json";
    let outcome = PowerOutcome::Failed(reason);
    PowerReport {
        checks: vec![PowerCheck { name, outcome }],
    }
}

fn judge(session: &Session<'_>) -> PowerReport {
    type Check = fn(&Session<'_>) -> CheckResult;
    let checks: [(&'static str, Check); 11] = [
        ("Check client sources checksum", |session| {
            results::sources(session, &session.client)
        }),
        ("Check server sources checksum", |session| {
            results::sources(session, &session.server)
        }),
        ("Check PTD commands and replies", commands::ptd),
        ("Check UUID", commands::uuids),
        ("Check session name", commands::names),
        ("Check time difference", phases::check),
        ("Check client server messages", commands::messages),
        ("Check results checksum", results::check),
        ("Check errors and warnings from PTD logs", ptd_log::check),
        ("Check PTD configuration", commands::configuration),
        ("Check debug is disabled on server-side", commands::debug),
    ];
    let checks = checks.map(|(name, check)| PowerCheck {
        name,
        outcome: match check(session) {
            Ok(()) => PowerOutcome::Passed,
            Err(SessionFinding::Warning(reason)) => PowerOutcome::Warned(reason),
            Err(SessionFinding::Fault(reason)) => PowerOutcome::Failed(reason),
        },
    });
    PowerReport {
        checks: checks.into(),
    }
}
