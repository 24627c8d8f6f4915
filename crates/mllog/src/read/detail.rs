//! Reads `mlperf_log_detail.txt` record by record.
//!
//! A record's line is `:::MLLOG ` and a JSON object. Other lines are skipped, as by the official parsers. [`super::DetailLog`]
//! looks up records.

use std::io::BufRead;

use serde::Deserialize;

use super::{
    detail_value::{Quirk, Value},
    json_fault::JsonFault,
    lines::{LineError, Lines},
};

const PREFIX: &str = ":::MLLOG ";
/// The longest line that is read, in bytes. A loaded set of the largest data set (200,000 indices) has under 2 MiB.
const MAX_LINE: u64 = 16 << 20;

/// One record of the detail log.
#[derive(Debug, Clone, PartialEq)]
pub struct DetailRecord {
    /// Its line in the file, from 1.
    pub line: u64,
    /// The key, for example `effective_scenario`.
    pub key: String,
    /// The value.
    pub value: Value,
    /// The deviation of the value from JSON; `None` for nearly all records.
    pub quirk: Option<Quirk>,
    /// The time in milliseconds since the log was opened.
    pub time_ms: Option<f64>,
    /// Whether the record counts as an error of the run.
    pub is_error: bool,
    /// Whether the record counts as a warning.
    pub is_warning: bool,
    /// The source file that logged it, by its path in LoadGen's build.
    pub source_file: Option<String>,
    /// The line in that file.
    pub source_line: Option<u64>,
    /// The process that logged it.
    pub pid: Option<u64>,
    /// The thread that logged it.
    pub tid: Option<u64>,
}

/// The error if a line of a detail log cannot be read. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DetailError {
    /// The line cannot be read as text.
    #[error("the detail log cannot be parsed")]
    Line(#[from] LineError),
    /// The log is too large to be kept in memory.
    #[error("the detail log has more than {limit}")]
    TooLarge {
        /// The exceeded limit, for example `64 MiB`.
        limit: &'static str,
    },
    /// The line begins like a record but cannot be parsed.
    #[error("line {line} of the detail log is not a LoadGen record")]
    Record {
        /// The number of the line.
        line: u64,
        /// The reason.
        #[source]
        source: JsonFault,
    },
}

/// Iterates over the records of a detail log. It continues after a line that cannot be parsed, so that all errors can be shown at
/// once.
///
/// ```
/// let log = br#":::MLLOG {"key": "qsl_rng_seed", "value": 18446744073709551615, "metadata": {"is_error": false}}"#;
/// let record = regatta_mllog::read::DetailReader::new(&log[..]).next().unwrap().unwrap();
/// assert_eq!((record.line, record.value.as_u64()), (1, Some(u64::MAX)));
/// ```
#[derive(Debug)]
pub struct DetailReader<R> {
    lines: Lines<R>,
    passed_over: u64,
}

impl<R: BufRead> DetailReader<R> {
    /// Creates a reader of `input`.
    pub fn new(input: R) -> Self {
        Self {
            lines: Lines::new(input, MAX_LINE),
            passed_over: 0,
        }
    }

    /// Returns the number of skipped lines: lines with content that do not begin with `:::MLLOG `.
    #[must_use]
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }
}

impl<R: BufRead> Iterator for DetailReader<R> {
    type Item = Result<DetailRecord, DetailError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let text = match self.lines.next()? {
                Ok(text) => text,
                Err(error) => return Some(Err(error.into())),
            };
            let Some(json) = text.strip_prefix(PREFIX) else {
                self.passed_over += u64::from(!text.trim().is_empty());
                continue;
            };
            let line = self.lines.number();
            return Some(read_record(line, json).map_err(|error| {
                let source = JsonFault::in_line(&error, PREFIX.len());
                DetailError::Record { line, source }
            }));
        }
    }
}

/// The JSON object of a line. Fields that the official parsers need are required, the others are optional.
#[derive(Deserialize)]
#[serde(expecting = "an object of key, value and metadata")]
struct Written {
    key: String,
    value: Value,
    #[serde(default)]
    time_ms: Option<f64>,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    is_error: bool,
    #[serde(default)]
    is_warning: bool,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line_no: Option<u64>,
    #[serde(default)]
    pid: Option<u64>,
    #[serde(default)]
    tid: Option<u64>,
}

fn read_record(line: u64, json: &str) -> Result<DetailRecord, serde_json::Error> {
    match serde_json::from_str::<Written>(json) {
        Ok(written) => Ok(written.into_record(line, None)),
        Err(strict) => read_quirky(line, json).ok_or(strict),
    }
}

/// Reads a line whose value is not JSON. LoadGen's fixed key order determines where the value begins and ends.
fn read_quirky(line: u64, json: &str) -> Option<DetailRecord> {
    const BEFORE: &str = "\"value\": ";
    const AFTER: &str = ", \"time_ms\": ";
    let start = json.find(BEFORE)? + BEFORE.len();
    let end = json.rfind(AFTER).filter(|end| *end >= start)?;
    let quirk = Value::from_quirk(json.get(start..end)?)?;
    let without = format!("{}null{}", json.get(..start)?, json.get(end..)?);
    let written: Written = serde_json::from_str(&without).ok()?;
    Some(written.into_record(line, Some(quirk)))
}

impl Written {
    fn into_record(self, line: u64, quirk: Option<(Value, Quirk)>) -> DetailRecord {
        let (value, quirk) = match quirk {
            Some((value, quirk)) => (value, Some(quirk)),
            None => (self.value, None),
        };
        DetailRecord {
            line,
            key: self.key,
            value,
            quirk,
            time_ms: self.time_ms,
            is_error: self.metadata.is_error,
            is_warning: self.metadata.is_warning,
            source_file: self.metadata.file,
            source_line: self.metadata.line_no,
            pid: self.metadata.pid,
            tid: self.metadata.tid,
        }
    }
}
