//! A problem in a plan, with its line and remedy.

use std::ops::Range;

/// A problem in a plan, with its line if it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
pub struct PlanProblem {
    /// The line, from 1.
    pub line: Option<usize>,
    /// The problem and its cause.
    pub what: String,
    /// The remedy.
    pub hint: Option<String>,
}

impl PlanProblem {
    /// Creates a problem that belongs to no line.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            line: None,
            what: what.into(),
            hint: None,
        }
    }

    /// Creates a problem at a place of the plan's text.
    pub(super) fn at(text: &str, span: &Range<usize>, what: impl Into<String>) -> Self {
        Self {
            line: Some(line_at(text, span.start)),
            ..Self::new(what)
        }
    }

    /// Adds a remedy.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Returns the number of the line with a byte.
fn line_at(text: &str, byte: usize) -> usize {
    let before = text.as_bytes().iter().take(byte);
    before.filter(|byte| **byte == b'\n').count() + 1
}
