//! A problem in a plan, with its line and remedy.

use std::ops::Range;

use regatta_lab_runs::plan_toml::{PlanTomlError, excerpt, line_at};

/// A problem in a plan, with its line if it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
pub struct PlanProblem {
    /// The line, from 1.
    pub line: Option<usize>,
    /// The problem and its cause.
    pub what: String,
    /// The line's text with carets below the place, or all problems with theirs.
    pub excerpt: Option<String>,
    /// The remedy.
    pub hint: Option<String>,
}

impl PlanProblem {
    /// Creates a problem that belongs to no line.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            line: None,
            what: what.into(),
            excerpt: None,
            hint: None,
        }
    }

    /// Creates a problem at a place of the plan's text.
    pub(super) fn at(text: &str, span: &Range<usize>, what: impl Into<String>) -> Self {
        Self {
            line: Some(line_at(text, span.start)),
            excerpt: excerpt(text, span),
            ..Self::new(what)
        }
    }

    /// Creates one problem for all errors of the plan's TOML.
    pub(super) fn of_toml(found: &[PlanTomlError]) -> Self {
        let excerpt = Some(PlanTomlError::list(found));
        match found {
            [only] => Self {
                line: only.line,
                excerpt,
                ..Self::new(only.what.clone())
            },
            several => Self {
                excerpt,
                ..Self::new(format!("{} errors", several.len()))
            },
        }
    }

    /// Returns the place and the remedy.
    pub fn advice(&self) -> Option<String> {
        let parts: Vec<&str> = [&self.excerpt, &self.hint]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n"))
    }

    /// Adds a remedy.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
