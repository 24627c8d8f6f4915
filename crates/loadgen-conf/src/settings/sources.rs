//! The sources of a run's settings: file and line of each key that a conf file sets. This module checks no value.

use std::{collections::BTreeMap, fmt};

use regatta_types::Scenario;

use crate::{Conf, ConfKind};

/// A line of a conf file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfLine {
    /// The file's name, as the caller passed it.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
}

impl fmt::Display for ConfLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.file, self.line)
    }
}

/// The lines that set a run's settings, by key. A key that no conf file sets has no line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingSources(BTreeMap<String, ConfLine>);

impl SettingSources {
    /// Adds the lines of `conf` for `model` and `scenario`. Call it in the order in which the files are applied. A later file replaces the
    /// lines of an earlier one.
    pub fn add(&mut self, conf: &Conf, kind: ConfKind, model: &str, scenario: Scenario) {
        let model = if kind == ConfKind::Audit { "*" } else { model };
        for (key, line) in conf.lines(model, scenario.as_str()) {
            let file = conf.file.clone();
            self.0.insert(key, ConfLine { file, line });
        }
    }

    /// Removes a key whose value was replaced by something other than a conf file.
    pub fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// Returns the line that sets `key`, if a conf file does.
    #[must_use]
    pub fn line(&self, key: &str) -> Option<&ConfLine> {
        self.0.get(key)
    }
}
