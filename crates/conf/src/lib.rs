//! LoadGen conf files: `mlperf.conf`, `user.conf`, `audit.config`. Lines are `model.scenario.key = value`.
//!
//! Reading follows the official parser token by token, but is strict where that one passes over a mistake in silence
//! (a line without `=`, a key without a value): such a line is an error here, with file and line. What the values do
//! to a run's settings is [`TestSettings::apply`](crate::TestSettings::apply).

mod apply;
mod keys;
mod number;
mod settings;

use std::collections::BTreeMap;

pub use number::{IntegerReading, Number};
pub use settings::{ConfLine, LONGEST_RUN, SettingError, SettingSources, TestSettings};

/// Which conf file it is: decides which keys are read, as in LoadGen's `FromConfig`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfKind {
    /// The official conf that is compiled into LoadGen: the only place that seeds are read from.
    Mlperf,
    /// The user's tuning.
    User,
    /// A compliance test's settings: model names are not looked at, only the wildcard.
    Audit,
}

/// A conf file's entries. Of a key that stands twice, the last value counts, as in LoadGen.
#[derive(Debug, Clone, PartialEq)]
pub struct Conf {
    file: String,
    entries: BTreeMap<String, Entry>,
}

/// One value and where it stands.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    /// The value as it was written.
    word: String,
    value: Number,
    line: usize,
}

/// Why a conf file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {problem}")]
pub struct ConfError {
    /// The file's name as the caller gave it.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong with it, and what is expected.
    pub problem: ConfProblem,
}

/// What can be wrong with a conf line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfProblem {
    /// No `=` stands between key and value, or not with blanks around it.
    #[error("expected `model.scenario.key = value` with blanks around `=`, found `{0}`")]
    NoEquals(String),
    /// Nothing stands behind `=`.
    #[error("`{0}` has no value")]
    NoValue(String),
    /// The value, or something behind it such as a comment, is not a number.
    #[error(
        "the value of `{key}` must be an integer or a decimal number and nothing may follow it, found `{found}`"
    )]
    NotANumber {
        /// The key.
        key: String,
        /// The word that is not a number.
        found: String,
    },
    /// The value is a number, but LoadGen would take it for another one.
    #[error("`{key}` is {found}, but must be {expected}; hint: {hint}")]
    Value {
        /// The key.
        key: String,
        /// The value as it was written.
        found: String,
        /// What the key takes.
        expected: &'static str,
        /// What helps.
        hint: &'static str,
    },
    /// `mode` is none of 0 to 3.
    #[error(
        "mode must be 0 (SubmissionRun), 1 (AccuracyOnly), 2 (PerformanceOnly) or 3 (FindPeakPerformance), found {0}"
    )]
    UnknownMode(u64),
}

/// An entry that LoadGen accepts but that has no effect, or not the one that was meant: worth telling the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: `{key}` {reason}")]
pub struct ConfWarning {
    /// The file's name as the caller gave it.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
    /// The whole key.
    pub key: String,
    /// What becomes of it.
    pub reason: &'static str,
}

impl Conf {
    /// Reads a conf text. `file` is only used to tell where an error is.
    ///
    /// # Errors
    /// At the first line that is not empty, not a comment and not `key = value`. A comment is a line whose first word
    /// is `#`: LoadGen takes `#word` for a key and a comment behind a value for a second value.
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

    /// The file's name as it was given to [`parse`](Self::parse).
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Finds a key as LoadGen does: `model.scenario`, then `*.scenario`, then `model.*`, then `*.*`.
    #[must_use]
    pub fn lookup(&self, model: &str, scenario: &str, key: &str) -> Option<Number> {
        self.find(model, scenario, key).map(|entry| entry.value)
    }

    /// The keys that lines set for `model` and `scenario`, each with the number of the line that counts.
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

/// A line's key, and its value as a word and as a number.
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
