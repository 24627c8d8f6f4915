//! A LoadGen run with its detail log, and access to the values that the checks and findings use.

use regatta_mllog::read::Value;
use regatta_types::Scenario;

use super::case::Case;
use crate::check::{
    finding::{Findings, Rule, Severity},
    run_log::{RunLog, shown},
};

/// The fix for a log that contradicts itself.
pub(super) const FIX: &str = "put LoadGen's log of the run in its place";
/// The allowed relative difference between two values of a rate, because logs have six digits.
pub(super) const SIX_DIGITS: f64 = 1e-5;

/// The purpose of a run; the expected settings depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose<'a> {
    /// The submitted result.
    Submission,
    /// The compliance test of this name.
    Test(&'a str),
}

/// A run and its detail log.
#[derive(Clone, Copy)]
pub(super) struct LoggedRun<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) log: &'a RunLog,
    /// The path of the file that findings name.
    pub(super) path: &'a str,
}

impl<'a> LoggedRun<'a> {
    /// Returns the scenario that LoadGen ran.
    pub(super) fn scenario(&self) -> Option<Scenario> {
        self.log.text("effective_scenario")?.parse().ok()
    }

    /// Returns a key's value if it is an integer.
    pub(super) fn integer(&self, key: &str) -> Option<i128> {
        match self.log.value(key)? {
            Value::Unsigned(value) => Some((*value).into()),
            Value::Signed(value) => Some((*value).into()),
            _ => None,
        }
    }

    /// Returns a key's value if it is an unsigned integer.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        self.log.value(key)?.as_u64()
    }

    /// Returns a key's value if it is a finite number.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.log.number(key).filter(|value| value.is_finite())
    }

    /// Returns a key's value as text for a message, or `missing`.
    pub(super) fn found(&self, key: &str) -> String {
        self.log.value(key).map_or_else(|| "missing".to_owned(), shown)
    }

    /// Adds an error at the key's line.
    pub(super) fn error(&self, findings: &mut Findings, rule: Rule, key: &str, text: String) {
        self.add(findings, Severity::Error, rule, key, text);
    }

    /// Adds an error at the key's line, with a specific fix.
    pub(super) fn error_with_fix(
        &self,
        findings: &mut Findings,
        rule: Rule,
        key: &str,
        text: String,
        fix: &str,
    ) {
        findings.error(rule, (self.path, self.log.line(key)), text, fix);
    }

    /// Adds a finding at the key's line.
    pub(super) fn add(
        &self,
        findings: &mut Findings,
        severity: Severity,
        rule: Rule,
        key: &str,
        text: String,
    ) {
        findings.add(severity, rule, (self.path, self.log.line(key)), text, FIX);
    }
}
