//! The parts of a detail log that checks need: each key's first value, the errors, and lines that cannot be parsed.
//!
//! The log is read once, line by line. The checks interpret it.

use std::{
    borrow::Cow,
    io::{self, Read},
};

use regatta_mllog::read::{DetailReader, Quirk, Value};

use super::{
    first_values::{FirstValues, Origin},
    hashed::Hashed,
    line_bytes::LineBytes,
    lines::Lines,
    log_line::{Record, Scalar},
    plain_line,
};
use crate::tree::Tree;

/// The prefix of a record.
const MARKER: &[u8] = b":::MLLOG ";
/// The longest line that is read into memory, in bytes. LoadGen's lines are shorter.
const MAX_LINE: usize = 16 << 20;
/// The longest record that is kept, in bytes. LoadGen's have at most a few hundred, except lists, which are not kept.
const MAX_KEPT: usize = 16 << 10;
/// The longest line end that is kept, in bytes. LoadGen's have at most a few hundred.
const MAX_TAIL: usize = 4096;
/// The number of errors and unreadable lines that are kept. Further ones are only counted.
const MAX_FAULTS: usize = 100;

/// The key of the list of samples that LoadGen loads before a series of queries.
const LOADED_SET: &[u8] = b"loaded_qsl_set";
/// The number of bytes of a loaded set that are kept from its beginning and from its end.
const LOADED_SET_ENDS: usize = 256;

/// A line of a log, with its text or its error.
#[derive(Debug, Clone)]
pub(crate) struct LogLine {
    pub(crate) line: u64,
    pub(crate) text: String,
}

/// A record whose key had another value before.
#[derive(Debug, Clone)]
pub(crate) struct Repeat {
    pub(crate) line: u64,
    pub(crate) key: String,
    pub(crate) value: Value,
}

/// The beginning and the end of a list as written. Both are the complete list if it is short.
#[derive(Debug, Clone)]
pub(crate) struct ListEnds {
    pub(crate) line: u64,
    pub(crate) head: String,
    pub(crate) tail: String,
}

/// The contents of a detail log.
#[derive(Debug, Default)]
pub(crate) struct RunLog {
    /// The first value of each key, except lists and maps.
    first: FirstValues,
    /// The end of the last line with a list or a map, if it is not an error.
    bulk_tail: Vec<u8>,
    /// The first hundred records that LoadGen marked as errors.
    pub(crate) errors: Vec<LogLine>,
    /// The number of records marked as errors.
    pub(crate) error_count: u64,
    /// The first hundred lines that begin like a record but cannot be parsed.
    pub(crate) unreadable: Vec<LogLine>,
    /// The first hundred lines at which the official parsers fail. They include `unreadable`.
    pub(crate) refused: Vec<LogLine>,
    /// The first hundred records that give a key another value than its first record.
    pub(crate) repeats: Vec<Repeat>,
    /// The first set of samples that was loaded.
    pub(crate) loaded_set: Option<ListEnds>,
    /// Bytes that LoadGen does not write.
    pub(crate) line_bytes: LineBytes,
    /// Whether the file has any lines.
    has_lines: bool,
    /// Whether the first line is a record.
    pub(crate) begins_with_record: bool,
    /// The file's SHA-1 in lower-case hexadecimal, if it was requested.
    pub(crate) sha1: Option<String>,
}

impl ListEnds {
    fn of(line: u64, written: &[u8]) -> Self {
        let most = LOADED_SET_ENDS.min(written.len());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            line,
            head: text(&written[..most]),
            tail: text(&written[written.len() - most..]),
        }
    }
}

/// The reason why a log cannot be read at all.
#[derive(Debug, Clone)]
pub(crate) struct Unreadable(pub(crate) String);

impl RunLog {
    /// Creates a log from values without a file. The error count is the value of `num_errors`.
    pub(crate) fn of(values: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut log = Self::default();
        for (key, value) in values {
            log.first.add(key.as_bytes(), Origin::default(), value);
        }
        log.error_count = log.number("num_errors").map_or(0, |count| count as u64);
        log
    }

    /// Reads the log at `path`.
    pub(crate) fn read(tree: &Tree, path: &str) -> Result<Self, Unreadable> {
        let file = tree.open(path).map_err(|error| Unreadable(error.to_string()))?;
        Self::read_from(file)
    }

    /// Reads and hashes the log at `path`.
    pub(crate) fn read_hashed(tree: &Tree, path: &str) -> Result<Self, Unreadable> {
        let unreadable = |error: io::Error| Unreadable(error.to_string());
        let mut file = Hashed::open(tree, path).map_err(unreadable)?;
        let mut log = Self::read_from(&mut file)?;
        log.sha1 = Some(file.sha1().map_err(unreadable)?);
        Ok(log)
    }

    fn read_from(input: impl Read) -> Result<Self, Unreadable> {
        let mut lines = Lines::new(input, MAX_LINE);
        let mut log = Self::default();
        for line in 1.. {
            let read = lines.next();
            let Some(bytes) = read.map_err(|error| Unreadable(format!("line {line}: {error}")))? else {
                break;
            };
            if bytes.len() == MAX_LINE && !bytes.ends_with(b"\n") {
                log.unread(line, "the line is longer than 16 MiB".to_owned());
                break;
            }
            log.line_of(line, bytes);
        }
        Ok(log)
    }

    fn line_of(&mut self, line: u64, bytes: &[u8]) {
        self.has_lines = true;
        self.line_bytes.take(line, bytes);
        let json = bytes.strip_prefix(MARKER);
        if bytes.len() > MAX_KEPT && json.is_some_and(|json| !is_list(json)) {
            return self.unread(line, format!("the record is longer than {} KiB", MAX_KEPT >> 10));
        }
        let is_plain = json.is_some_and(|json| self.plain(line, json).is_some());
        if !is_plain && std::str::from_utf8(bytes).is_err() {
            return self.unread(line, "the line is not UTF-8 text".to_owned());
        }
        let Some(json) = json else { return };
        self.begins_with_record |= line == 1;
        if is_plain {
            return;
        }
        match serde_json::from_slice::<Record<'_>>(json) {
            Ok(record) => self.take((line, None), record.key, record.metadata.is_error, record.value),
            Err(_) => self.unusual(line, bytes),
        }
    }

    /// Reads a record in LoadGen's own form. Returns `None` and changes nothing for any other form.
    fn plain(&mut self, line: u64, json: &[u8]) -> Option<()> {
        let expected = self.first.expected();
        let plain = plain_line::take(json, expected.map_or(&[], |(_, key)| key))?;
        let known = match expected {
            Some((number, key)) if key == plain.key => Some(number),
            _ => self.first.find(plain.key),
        };
        if plain.is_bulk() && self.loaded_set.is_none() && plain.key == LOADED_SET {
            self.loaded_set = Some(ListEnds::of(line, plain.value));
        }
        if let Some(constant) = known.and_then(|number| self.first.constant(number))
            && let Some(value) = plain.scalar().kept()
            && *constant != value
        {
            let key = String::from_utf8_lossy(plain.key).into_owned();
            push(&mut self.repeats, Repeat { line, key, value });
        }
        let usual = match known {
            _ if plain.is_bulk() => &self.bulk_tail,
            Some(number) => self.first.tail(number),
            None => &[],
        };
        // Most lines repeat a key with a known first value and a known line end, so they need no parsing. An empty tail is
        // unknown.
        let is_usual = !usual.is_empty() && *usual == *plain.tail;
        if let Some(number) = known {
            self.first.met(number);
        }
        if is_usual {
            return Some(());
        }
        let is_error = plain_line::take_tail(plain.tail)?;
        if is_error {
            let key = std::str::from_utf8(plain.key).ok()?;
            self.take((line, plain.time_ms()), key.into(), true, plain.scalar());
        } else if plain.tail.len() <= MAX_TAIL && plain.is_bulk() {
            plain.tail.clone_into(&mut self.bulk_tail);
        } else if plain.tail.len() <= MAX_TAIL
            && let Some(number) = known
        {
            self.first.keep_tail(number, plain.tail);
        }
        if known.is_none()
            && !is_error
            && let Some(value) = plain.scalar().kept()
        {
            let (line, time_ms) = (Some(line), plain.time_ms());
            self.first.add(plain.key, Origin { line, time_ms }, value);
        }
        Some(())
    }

    /// Reads a record that strict JSON does not allow: stores LoadGen's intended value, or the error.
    fn unusual(&mut self, line: u64, bytes: &[u8]) {
        match DetailReader::new(bytes).next() {
            Some(Ok(record)) => {
                if record.quirk != Some(Quirk::NonFinite) {
                    let text = "a value that is not JSON".to_owned();
                    push(&mut self.refused, LogLine { line, text });
                }
                let value = match record.value {
                    Value::Float(value) => Scalar::Float(value),
                    Value::Text(text) => Scalar::Text(text.into()),
                    _ => Scalar::Bulk,
                };
                self.take((line, record.time_ms), record.key.into(), record.is_error, value);
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

    /// Stores a record with its line and time.
    fn take(
        &mut self,
        (line, time_ms): (u64, Option<f64>),
        key: Cow<'_, str>,
        is_error: bool,
        value: Scalar<'_>,
    ) {
        let known = self.first.find(key.as_bytes()).is_some();
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
        if !known {
            let line = Some(line);
            self.first.add(key.as_bytes(), Origin { line, time_ms }, value);
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

    /// Returns whether the file is empty.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_lines
    }

    /// Returns whether the log has no readable record.
    pub(crate) fn has_no_records(&self) -> bool {
        self.first.is_empty()
    }

    /// Returns the value of a key's first record.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.first.get(key).map(|(value, _)| value)
    }

    /// Returns the time of a key's first record, in milliseconds since the start of the log.
    pub(crate) fn time_ms(&self, key: &str) -> Option<f64> {
        self.first.get(key).and_then(|(_, origin)| origin.time_ms)
    }

    /// Returns the line of a key's first record.
    pub(crate) fn line(&self, key: &str) -> Option<u64> {
        self.first.get(key).and_then(|(_, origin)| origin.line)
    }

    /// Returns a key's value if it is a text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.value(key)?.as_str()
    }

    /// Returns a key's value if it is a number.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.value(key)?.as_f64()
    }

    /// Returns a key's value if it is a boolean.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.value(key)?.as_bool()
    }
}

/// Returns whether a record's value is a list or a map.
fn is_list(json: &[u8]) -> bool {
    if let Some(plain) = plain_line::take(json, &[]) {
        return plain.is_bulk() && plain.key.len() <= MAX_KEPT;
    }
    let record = serde_json::from_slice::<Record<'_>>(json);
    record.is_ok_and(|record| matches!(record.value, Scalar::Bulk) && record.key.len() <= MAX_KEPT)
}

fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() < MAX_FAULTS {
        list.push(item);
    }
}

/// Formats a value for a message, shortened to 200 characters.
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
