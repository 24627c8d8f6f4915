//! LoadGen conf files: `mlperf.conf`, `user.conf`, `audit.config`. Lines have the form `model.scenario.key = value`.
//!
//! The parser follows the official one token by token, but is strict. The official one silently ignores mistakes (a line without `=`, a
//! key without a value). Here they are errors with file and line. [`TestSettings::apply`](crate::TestSettings::apply) applies the values
//! to a run's settings.

mod apply;
mod keys;
mod number;
mod settings;
mod user_key;

use std::collections::BTreeMap;

pub use number::{IntegerReading, Number};
pub use settings::{ConfLine, MAX_RUN, SettingError, SettingSources, TestSettings};
pub use user_key::{UserKeyError, full_user_key};

/// The kind of a conf file. It decides which keys are read, as in LoadGen's `FromConfig`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfKind {
    /// The official conf that is compiled into LoadGen. Seeds are read from this file only.
    Mlperf,
    /// The user's settings.
    User,
    /// A compliance test's settings. Only entries with the model wildcard apply.
    Audit,
}

/// A conf file's entries. When a key occurs twice, the last value applies, as in LoadGen.
#[derive(Debug, Clone, PartialEq)]
pub struct Conf {
    file: String,
    entries: BTreeMap<String, Entry>,
}

/// One value and its position.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    /// The value as written.
    word: String,
    value: Number,
    line: usize,
}

/// A syntax error in a conf file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {problem}")]
pub struct ConfError {
    /// The file's name, as the caller passed it.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong, and what is expected.
    pub problem: ConfProblem,
}

/// The kinds of errors in a conf line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfProblem {
    /// There is no `=` between key and value, or no blanks around it.
    #[error("expected `model.scenario.key = value` with blanks around `=`, found `{0}`")]
    NoEquals(String),
    /// No value follows `=`.
    #[error("`{0}` has no value")]
    NoValue(String),
    /// The value, or a word after it (for example a comment), is not a number.
    #[error(
        "the value of `{key}` must be an integer or a decimal number and nothing may follow it, found `{found}`"
    )]
    NotANumber {
        /// The key.
        key: String,
        /// The word that is not a number.
        found: String,
    },
    /// The value is a number, but LoadGen would read it as a different one.
    #[error("`{key}` is {found}, but must be {expected}; hint: {hint}")]
    Value {
        /// The key.
        key: String,
        /// The value as written.
        found: String,
        /// The values that the key accepts.
        expected: &'static str,
        /// How to fix it.
        hint: &'static str,
    },
    /// A user's conf has all seeds of a round, so it is an `mlperf.conf`, of which LoadGen would ignore the seeds.
    #[error(
        "`{0}`: this file has a round's seeds, so it is an mlperf.conf, not a user.conf; hint: name the file with this system's settings"
    )]
    NotUserConf(String),
    /// `mode` is not 0 to 3.
    #[error(
        "mode must be 0 (SubmissionRun), 1 (AccuracyOnly), 2 (PerformanceOnly) or 3 (FindPeakPerformance), found {0}"
    )]
    UnknownMode(u64),
}

/// An entry that LoadGen accepts although it has no effect, or a different effect than its value suggests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: `{key}` {reason}")]
pub struct ConfWarning {
    /// The file's name, as the caller passed it.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
    /// The complete key.
    pub key: String,
    /// How LoadGen treats the entry.
    pub reason: &'static str,
}

impl Conf {
    /// Parses a conf text. `file` is only used in errors.
    ///
    /// # Errors
    /// At the first line that is not empty, not a comment and not `key = value`. A comment is a line whose first word is `#`. LoadGen
    /// reads `#word` as a key, and a comment after a value as a second value.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfError> {
        let mut entries = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let entry = parse_line(line).map_err(|problem| ConfError {
                file: file.to_owned(),
                line: line_number,
                problem,
            })?;
            if let Some((key, word, value)) = entry {
                let entry = Entry {
                    word: word.to_owned(),
                    value,
                    line: line_number,
                };
                entries.insert(key.to_owned(), entry);
            }
        }
        Ok(Self {
            file: file.to_owned(),
            entries,
        })
    }

    /// Returns the file's name that the caller passed to [`parse`](Self::parse).
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Finds a key as LoadGen does: `model.scenario`, then `*.scenario`, then `model.*`, then `*.*`.
    #[must_use]
    pub fn lookup(&self, model: &str, scenario: &str, key: &str) -> Option<Number> {
        self.find(model, scenario, key).map(|entry| entry.value)
    }

    /// Returns the keys that apply to `model` and `scenario`, each with the number of the line that applies.
    fn lines(&self, model: &str, scenario: &str) -> Vec<(String, usize)> {
        let keys = self
            .entries
            .keys()
            .filter_map(|full_key| full_key.rsplit('.').next());
        keys.filter_map(|key| Some((key.to_owned(), self.find(model, scenario, key)?.line)))
            .collect()
    }

    fn find(&self, model: &str, scenario: &str, key: &str) -> Option<&Entry> {
        [(model, scenario), ("*", scenario), (model, "*"), ("*", "*")]
            .into_iter()
            .find_map(|(m, s)| self.entries.get(&format!("{m}.{s}.{key}")))
    }
}

/// Returns a line's key, and its value as a word and as a number.
fn parse_line(line: &str) -> Result<Option<(&str, &str, Number)>, ConfProblem> {
    let mut words = line.split_ascii_whitespace();
    let Some(key) = words.next() else { return Ok(None) };
    if key == "#" {
        return Ok(None);
    }
    if words.next() != Some("=") {
        return Err(ConfProblem::NoEquals(line.trim().to_owned()));
    }
    let mut last = None;
    for word in words {
        let number = Number::parse(word).ok_or_else(|| ConfProblem::NotANumber {
            key: key.to_owned(),
            found: word.to_owned(),
        })?;
        last = Some((word, number));
    }
    let (word, value) = last.ok_or_else(|| ConfProblem::NoValue(key.to_owned()))?;
    Ok(Some((key, word, value)))
}

#[cfg(test)]
mod tests;
