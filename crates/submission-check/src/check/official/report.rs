//! The report of an official check.

use std::collections::BTreeMap;

use regatta_catalogue::round::Checker;

use super::row::Row;

/// The official checker's verdict on the complete tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The checker prints `SUMMARY: submission looks OK` and exits with status 0.
    Accept,
    /// The checker prints `SUMMARY: submission has errors` and exits with status 1.
    Reject,
    /// The checker ends with a traceback and no summary, for this reason.
    Crash(String),
}

/// A message about a path in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The path in the tree.
    pub path: String,
    /// The message.
    pub text: String,
    /// Whether the official checker fails because of it. Otherwise it only logs the message.
    pub fatal: bool,
}

/// The verdict, results and messages of an official checker.
#[derive(Debug, Clone)]
pub struct Official {
    /// The checker that was reproduced.
    pub checker: Checker,
    /// The checker's verdict.
    pub verdict: Verdict,
    /// The rows of its CSV, in path order.
    pub rows: Vec<Row>,
    /// Its items: a path and its result, or `None` for `NoResults`.
    pub items: BTreeMap<String, Option<String>>,
    /// Its messages.
    pub notes: Vec<Note>,
    /// The last lines of its log: items, counts and summary.
    pub summary: Vec<String>,
}
