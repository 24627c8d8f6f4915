//! The findings of a check: the place, the rule and the fix.

use std::collections::HashMap;

use serde::Serialize;

/// The importance of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The submission breaks a rule.
    Error,
    /// Allowed, but probably a mistake.
    Warning,
    /// Useful to know in a review.
    Note,
}

/// A rule and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The rule's short name.
    pub name: &'static str,
    /// The document or the official check that the rule comes from.
    pub source: &'static str,
}

/// One finding in a submission.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Finding {
    /// Its importance.
    pub severity: Severity,
    /// The rule's name and source.
    pub rule: String,
    /// The file or directory, relative to the submission's root.
    pub path: String,
    /// The line in the file, from 1, if there is one.
    pub line: Option<u64>,
    /// The error, in a few words.
    pub message: String,
    /// The hint about the fix.
    // The key in the stable JSON.
    pub fix: String,
    /// The number of checks that found it.
    #[serde(skip_serializing_if = "is_one")]
    pub count: u64,
}

impl Finding {
    /// Returns the sort key.
    fn place(&self) -> (Severity, &str, Option<u64>) {
        (self.severity, &self.path, self.line)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

/// The findings so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    /// The number of errors, stored because it is read for every system and scenario. A hostile tree can have any number of them.
    errors: usize,
}

impl Findings {
    /// Adds a finding.
    pub(crate) fn add(
        &mut self,
        severity: Severity,
        rule: Rule,
        place: impl Into<Place>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let Place { path, line } = place.into();
        self.errors += usize::from(severity == Severity::Error);
        self.list.push(Finding {
            severity,
            rule: format!("{}: {}", rule.name, rule.source),
            path,
            line,
            message: message.into(),
            fix: fix.into(),
            count: 1,
        });
    }

    pub(crate) fn error(
        &mut self,
        rule: Rule,
        place: impl Into<Place>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.add(Severity::Error, rule, place, message, fix);
    }

    pub(crate) fn warning(
        &mut self,
        rule: Rule,
        place: impl Into<Place>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.add(Severity::Warning, rule, place, message, fix);
    }

    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// Returns all findings: errors first, then by path and line. Equal findings are merged, with their count.
    pub(crate) fn into_list(self) -> Vec<Finding> {
        let mut numbers = HashMap::new();
        let mut list: Vec<Finding> = Vec::new();
        for finding in self.list {
            let number = *numbers.entry(finding.clone()).or_insert(list.len());
            match list.get_mut(number) {
                Some(same) => same.count += 1,
                None => list.push(finding),
            }
        }
        list.sort_by(|one, other| one.place().cmp(&other.place()));
        list
    }

    /// Adds the findings of `other`.
    pub(crate) fn extend(&mut self, other: Self) {
        self.errors += other.errors;
        self.list.extend(other.list);
    }
}

/// A path with an optional line.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    path: String,
    line: Option<u64>,
}

impl From<&str> for Place {
    fn from(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            line: None,
        }
    }
}

impl From<&String> for Place {
    fn from(path: &String) -> Self {
        path.as_str().into()
    }
}

impl From<(&str, Option<u64>)> for Place {
    fn from((path, line): (&str, Option<u64>)) -> Self {
        Self {
            path: path.to_owned(),
            line,
        }
    }
}
