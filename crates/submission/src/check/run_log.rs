//! What checks need of a detail log: the first value of each key, the errors, and the lines that do not read.
//!
//! The log is read once and a line at a time; what it means is the checks' business.

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{self, Read},
};

use regatta_mllog::read::{DetailReader, Quirk, Value};

use super::{
    hashed::Hashed,
    lines::Lines,
    log_line::{Record, Scalar},
    plain_line::{self, PlainLine},
};
use crate::tree::Tree;

/// What a record begins with.
const MARKER: &str = ":::MLLOG ";
/// Longer lines are none of LoadGen's, and are not taken into memory.
const LONGEST_LINE: usize = 64 << 20;
/// Keys beyond this are not kept: LoadGen writes about two hundred.
const MOST_KEYS: usize = 4096;
/// Longer line ends are not kept: LoadGen's have at most some hundred bytes.
const LONGEST_TAIL: usize = 4096;
/// Errors and unreadable lines beyond this are only counted.
const MOST_FAULTS: usize = 100;

/// A line of a log and what it says or what is wrong with it.
#[derive(Debug, Clone)]
pub(crate) struct LogLine {
    pub(crate) line: u64,
    pub(crate) text: String,
}

/// The facts of a detail log.
#[derive(Debug, Default)]
pub(crate) struct RunLog {
    /// Each key's first record.
    first: HashMap<String, First>,
    /// How the last list's line ended, where it is no error; lists themselves are not kept.
    list_tail: Box<str>,
    /// Records that LoadGen marked as errors, the first hundred.
    pub(crate) errors: Vec<LogLine>,
    /// How many there are.
    pub(crate) error_count: u64,
    /// Lines that are no records though they begin like one, the first hundred.
    pub(crate) unreadable: Vec<LogLine>,
    /// Lines that no official parser survives, the first hundred; a superset of `unreadable`.
    pub(crate) refused: Vec<LogLine>,
    /// Whether there are lines at all.
    has_lines: bool,
    /// Whether the first line is a record.
    pub(crate) begins_with_record: bool,
    /// The file's SHA-1 in lower-case hexadecimal, where it was asked for.
    pub(crate) sha1: Option<String>,
}

/// What is kept of a key's first record.
#[derive(Debug)]
struct First {
    line: Option<u64>,
    value: Value,
    /// How the key's last line ended, where it is no error: most lines of a key end alike.
    tail: Box<str>,
}

/// A log that cannot be read at all.
#[derive(Debug, Clone)]
pub(crate) struct Unreadable(pub(crate) String);

impl RunLog {
    /// A log of these values, in no file: errors in it are those that a value counts.
    pub(crate) fn of(values: impl IntoIterator<Item = (String, Value)>) -> Self {
        let first = values.into_iter().map(|(key, value)| {
            let tail = Box::default();
            let line = None;
            (key, First { line, value, tail })
        });
        let mut log = Self {
            first: first.collect(),
            ..Self::default()
        };
        log.error_count = log.number("num_errors").map_or(0, |count| count as u64);
        log
    }

    /// Reads the log at `path`.
    pub(crate) fn read(tree: &Tree, path: &str) -> Result<Self, Unreadable> {
        let file = tree.open(path).map_err(|error| Unreadable(error.to_string()))?;
        Self::read_from(file)
    }

    /// The same, and its hash.
    pub(crate) fn read_hashed(tree: &Tree, path: &str) -> Result<Self, Unreadable> {
        let unreadable = |error: io::Error| Unreadable(error.to_string());
        let mut file = Hashed::open(tree, path).map_err(unreadable)?;
        let mut log = Self::read_from(&mut file)?;
        log.sha1 = Some(file.sha1().map_err(unreadable)?);
        Ok(log)
    }

    fn read_from(input: impl Read) -> Result<Self, Unreadable> {
        let mut lines = Lines::new(input, LONGEST_LINE);
        let mut log = Self::default();
        for line in 1.. {
            let read = lines.next();
            let Some(bytes) = read.map_err(|error| Unreadable(format!("line {line}: {error}")))? else {
                break;
            };
            if bytes.len() == LONGEST_LINE && !bytes.ends_with(b"\n") {
                log.unread(line, "the line is longer than 64 MiB".to_owned());
                break;
            }
            log.line_of(line, bytes);
        }
        Ok(log)
    }

    fn line_of(&mut self, line: u64, bytes: &[u8]) {
        self.has_lines = true;
        let Ok(text) = std::str::from_utf8(bytes) else {
            return self.unread(line, "the line is no UTF-8 text".to_owned());
        };
        let Some(json) = text.strip_prefix(MARKER) else {
            return;
        };
        self.begins_with_record |= line == 1;
        if let Some(plain) = plain_line::take(json) {
            // Most lines repeat a key whose first value is known: theirs is not even parsed.
            let is_list = plain.value.starts_with('[');
            let known = self.first.get(plain.key);
            let usual = if is_list {
                Some(&self.list_tail)
            } else {
                known.map(|first| &first.tail)
            };
            // An empty tail is none.
            if usual.is_some_and(|tail| !tail.is_empty() && **tail == *plain.tail) {
                return;
            }
            if let Some(is_error) = plain_line::take_tail(plain.tail) {
                if is_error || known.is_none() {
                    let value = match is_list {
                        true => Scalar::Bulk,
                        false => serde_json::from_str(plain.value).unwrap_or(Scalar::Bulk),
                    };
                    self.take(line, plain.key.into(), is_error, value);
                }
                if !is_error && plain.tail.len() <= LONGEST_TAIL {
                    self.keep_tail(&plain, is_list);
                }
                return;
            }
        }
        match serde_json::from_str::<Record<'_>>(json) {
            Ok(record) => self.take(line, record.key, record.metadata.is_error, record.value),
            Err(_) => self.unusual(line, bytes),
        }
    }

    /// Keeps how a line ends, to know the next one by it.
    fn keep_tail(&mut self, plain: &PlainLine<'_>, is_list: bool) {
        if is_list {
            self.list_tail = plain.tail.into();
        } else if let Some(first) = self.first.get_mut(plain.key) {
            first.tail = plain.tail.into();
        }
    }

    /// A record that strict JSON does not admit: what LoadGen meant by it, or what is wrong with it.
    fn unusual(&mut self, line: u64, bytes: &[u8]) {
        match DetailReader::new(bytes).next() {
            Some(Ok(record)) => {
                if record.quirk != Some(Quirk::NonFinite) {
                    let text = "a value that is no JSON".to_owned();
                    push(&mut self.refused, LogLine { line, text });
                }
                let value = match record.value {
                    Value::Float(value) => Scalar::Float(value),
                    Value::Text(text) => Scalar::Text(text.into()),
                    _ => Scalar::Bulk,
                };
                self.take(line, record.key.into(), record.is_error, value);
            }
            Some(Err(error)) => {
                let source = std::error::Error::source(&error);
                self.unread(
                    line,
                    source.map_or_else(|| error.to_string(), ToString::to_string),
                );
            }
            None => {}
        }
    }

    fn take(&mut self, line: u64, key: Cow<'_, str>, is_error: bool, value: Scalar<'_>) {
        let known = self.first.contains_key(key.as_ref());
        if known && !is_error {
            return;
        }
        let Some(value) = value.kept().or(is_error.then_some(Value::Null)) else {
            return;
        };
        if is_error {
            self.error_count += 1;
            let text = format!("{key}: {}", shown(&value));
            push(&mut self.errors, LogLine { line, text });
        }
        if !known && self.first.len() < MOST_KEYS {
            let first = First {
                line: Some(line),
                value,
                tail: Box::default(),
            };
            self.first.insert(key.into_owned(), first);
        }
    }

    fn unread(&mut self, line: u64, text: String) {
        push(
            &mut self.unreadable,
            LogLine {
                line,
                text: text.clone(),
            },
        );
        push(&mut self.refused, LogLine { line, text });
    }

    /// Whether the file holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_lines
    }

    /// Whether no record of it could be read.
    pub(crate) fn has_no_records(&self) -> bool {
        self.first.is_empty()
    }

    /// The value of a key's first record.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.first.get(key).map(|first| &first.value)
    }

    /// The line of a key's first record.
    pub(crate) fn line(&self, key: &str) -> Option<u64> {
        self.first.get(key).and_then(|first| first.line)
    }

    /// A key's value where it is text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.value(key)?.as_str()
    }

    /// A key's value where it is a number.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.value(key)?.as_f64()
    }

    /// A key's value where it is true or false.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.value(key)?.as_bool()
    }
}

fn push(list: &mut Vec<LogLine>, line: LogLine) {
    if list.len() < MOST_FAULTS {
        list.push(line);
    }
}

/// A value for people, cut where it is long.
pub(crate) fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Unsigned(value) => value.to_string(),
        Value::Signed(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Text(value) => value.clone(),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a map".to_owned(),
    };
    match text.char_indices().nth(200) {
        Some((cut, _)) => format!("{} ...", &text[..cut]),
        None => text,
    }
}
