//! The Power working group's checks of a measured session (`power_checker.py`): eleven, each with a verdict of its own.
//!
//! A session is the directory that holds `power/`, `ranging/` and `run_1/`. What the checks know of a round is data
//! ([`PowerRules`]). Nothing here proves that a meter was there: no check of the official program does.

mod commands;
mod phases;
mod ptd_log;
mod results;
pub(crate) mod samples;
mod session;

use std::cell::RefCell;

use regatta_config::round::PowerRules;
use serde::Serialize;
pub(crate) use session::SessionLogs;
use session::{Session, SessionFinding, Verdict};

use crate::tree::Tree;

/// What became of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "lowercase")]
pub enum Outcome {
    /// Nothing was found.
    Passed,
    /// It passes, and auditors are told this.
    Warned(String),
    /// It does not pass.
    Failed(String),
}

/// A check of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PowerCheck {
    /// The official program's name for it.
    pub name: &'static str,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The checks of a session, in the official order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PowerReport {
    /// All of them; one alone where the session's descriptions do not read, which ends the official program.
    pub checks: Vec<PowerCheck>,
}

impl PowerReport {
    /// Whether every check passes, with or without a warning.
    #[must_use]
    pub fn passes(&self) -> bool {
        let failed = |check: &PowerCheck| matches!(check.outcome, Outcome::Failed(_));
        !self.checks.iter().any(failed)
    }
}

/// Judges the session in `directory` of `tree` (`""` for the root), as the round's power checker does.
#[must_use]
pub fn check(tree: &Tree, directory: &str, rules: &PowerRules) -> PowerReport {
    match Session::read(tree, directory, rules, SessionLogs::default()) {
        Ok(session) => judge(&session),
        Err(reason) => unread(reason),
    }
}

/// The same, and what a stricter reading of PTDaemon's log finds, by line: the official one ends at its first warning and
/// leaves out the run's first and last minutes.
pub(crate) fn review(
    tree: &Tree,
    directory: &str,
    rules: &PowerRules,
    known: SessionLogs<'_>,
) -> (PowerReport, Vec<(u64, String)>) {
    match Session::read(tree, directory, rules, known) {
        Ok(mut session) => {
            session.overlooked = Some(RefCell::default());
            let report = judge(&session);
            let overlooked = session.overlooked.map(RefCell::into_inner);
            (report, overlooked.unwrap_or_default())
        }
        Err(reason) => (unread(reason), Vec::new()),
    }
}

fn unread(reason: String) -> PowerReport {
    let name = "Read client.json and server.json";
    let outcome = Outcome::Failed(reason);
    PowerReport {
        checks: vec![PowerCheck { name, outcome }],
    }
}

fn judge(session: &Session<'_>) -> PowerReport {
    type Check = fn(&Session<'_>) -> Verdict;
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
            Ok(()) => Outcome::Passed,
            Err(SessionFinding::Warning(reason)) => Outcome::Warned(reason),
            Err(SessionFinding::Fault(reason)) => Outcome::Failed(reason),
        },
    });
    PowerReport {
        checks: checks.into(),
    }
}
