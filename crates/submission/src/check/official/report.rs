//! What an official checker reports.

use std::collections::BTreeMap;

use regatta_config::round::Checker;

use super::row::Row;

/// What the official checker says of the whole tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// `SUMMARY: submission looks OK`, exit status 0.
    Accept,
    /// `SUMMARY: submission has errors`, exit status 1.
    Reject,
    /// A traceback and no summary, for this reason.
    Crash(String),
}

/// A message: what it is about, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// A path in the tree.
    pub path: String,
    /// What was found there.
    pub text: String,
    /// Whether the official checker fails for it; otherwise it only logs it.
    pub fatal: bool,
}

/// The outcome of an official checker.
#[derive(Debug, Clone)]
pub struct Official {
    /// Which checker.
    pub checker: Checker,
    /// Its verdict.
    pub verdict: Verdict,
    /// The rows of its CSV, in the order of paths.
    pub rows: Vec<Row>,
    /// Its items: path to result, `None` for `NoResults`.
    pub items: BTreeMap<String, Option<String>>,
    /// What it found on the way.
    pub notes: Vec<Note>,
    /// The last lines of its log: items, counts, summary.
    pub summary: Vec<String>,
}
