//! Writes `mlperf_log_detail.txt`: one `:::MLLOG` line per key. LoadGen chooses the keys and their order.

use std::{
    fmt::Write as _,
    io::{self, Write},
    panic::Location,
};

use crate::format;

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Information.
    Info,
    /// A warning (`is_warning`).
    Warning,
    /// An error (`is_error`). Checkers refuse logs with errors.
    Error,
}

/// A value, printed as the official LoadGen prints its C++ type.
#[derive(Debug, Clone, PartialEq)]
pub enum PrintedValue<'a> {
    /// A text in quotation marks. Unlike the official LoadGen, characters that JSON forbids are escaped.
    Text(&'a str),
    /// A decimal integer.
    Unsigned(u64),
    /// A decimal integer.
    Integer(i64),
    /// A number with six significant digits.
    Real(f64),
    /// `true` or `false`.
    Flag(bool),
    /// A list, for example `[1,2,3]`.
    Indices(&'a [usize]),
    /// A map, for example `{"name":"text"}`.
    Names(&'a [(&'a str, &'a str)]),
}

macro_rules! value_from {
    ($($from:ty => |$value:ident| $to:expr;)*) => {$(
        impl<'a> From<$from> for PrintedValue<'a> {
            fn from($value: $from) -> Self { $to }
        }
    )*};
}
value_from! {
    &'a str => |v| PrintedValue::Text(v);
    &'a String => |v| PrintedValue::Text(v);
    u64 => |v| PrintedValue::Unsigned(v);
    i64 => |v| PrintedValue::Integer(v);
    i32 => |v| PrintedValue::Integer(i64::from(v));
    f64 => |v| PrintedValue::Real(v);
    bool => |v| PrintedValue::Flag(v);
    &'a [usize] => |v| PrintedValue::Indices(v);
}

/// Writes detail lines and counts warnings and errors.
#[derive(Debug)]
pub struct DetailWriter<W> {
    out: W,
    pid: u32,
    errors: u64,
    warnings: u64,
}

impl<W: Write> DetailWriter<W> {
    /// Creates a writer for the process `pid`.
    pub const fn new(out: W, pid: u32) -> Self {
        Self {
            out,
            pid,
            errors: 0,
            warnings: 0,
        }
    }

    /// Writes one line. `time_ns` counts from the start of the log; `tid` is the thread that logs.
    ///
    /// # Errors
    /// Returns the error of writing.
    #[track_caller]
    pub fn line(
        &mut self,
        time_ns: u64,
        level: Level,
        tid: u64,
        key: &str,
        value: &PrintedValue<'_>,
    ) -> io::Result<()> {
        match level {
            Level::Info => {}
            Level::Warning => self.warnings += 1,
            Level::Error => self.errors += 1,
        }
        let place = Location::caller();
        let mut line = String::with_capacity(256);
        line.push_str(":::MLLOG {\"key\": ");
        push_text(&mut line, key);
        line.push_str(", \"value\": ");
        push_value(&mut line, value);
        // Writing to a String cannot fail.
        let _ = writeln!(
            line,
            ", \"time_ms\": {}.{:06}, \"namespace\": \"mlperf::logging\", \"event_type\": \"POINT_IN_TIME\", \
             \"metadata\": {{\"is_error\": {}, \"is_warning\": {}, \"file\": \"{}\", \"line_no\": {}, \"pid\": {}, \
             \"tid\": {tid}}}}}",
            time_ns / 1_000_000,
            time_ns % 1_000_000,
            level == Level::Error,
            level == Level::Warning,
            place.file(),
            place.line(),
            self.pid,
        );
        self.out.write_all(line.as_bytes())
    }

    /// Returns the number of lines with `is_error` so far.
    #[must_use]
    pub const fn errors(&self) -> u64 {
        self.errors
    }

    /// Returns the number of lines with `is_warning` so far.
    #[must_use]
    pub const fn warnings(&self) -> u64 {
        self.warnings
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn push_value(line: &mut String, value: &PrintedValue<'_>) {
    // Writing to a String cannot fail.
    let _ = match value {
        PrintedValue::Text(text) => {
            push_text(line, text);
            Ok(())
        }
        PrintedValue::Unsigned(number) => write!(line, "{number}"),
        PrintedValue::Integer(number) => write!(line, "{number}"),
        PrintedValue::Real(number) => line.write_str(&format::detail(*number)),
        PrintedValue::Flag(flag) => write!(line, "{flag}"),
        PrintedValue::Indices(indices) => {
            let listed: Vec<_> = indices.iter().map(ToString::to_string).collect();
            write!(line, "[{}]", listed.join(","))
        }
        PrintedValue::Names(names) => {
            line.push('{');
            for (index, (name, text)) in names.iter().enumerate() {
                if index > 0 {
                    line.push(',');
                }
                push_text(line, name);
                line.push(':');
                push_text(line, text);
            }
            line.write_char('}')
        }
    };
}

fn push_text(line: &mut String, text: &str) {
    line.push('"');
    for character in text.chars() {
        match character {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            control if control < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(line, "\\u{:04x}", u32::from(control));
            }
            other => line.push(other),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(key: &str, value: &PrintedValue<'_>, level: Level) -> String {
        let mut writer = DetailWriter::new(Vec::new(), 7);
        writer.line(12_000_345, level, 9, key, value).unwrap();
        let text = String::from_utf8(writer.out).unwrap();
        let (head, rest) = text.split_once("\"file\": ").unwrap();
        let (_, tail) = rest.split_once("\"pid\"").unwrap();
        format!("{head}..\"pid\"{tail}")
    }

    #[test]
    fn a_line_is_formed_as_the_official_one() {
        assert_eq!(
            written("effective_target_qps", &PrintedValue::Real(1000.0), Level::Info),
            ":::MLLOG {\"key\": \"effective_target_qps\", \"value\": 1000, \"time_ms\": 12.000345, \
             \"namespace\": \"mlperf::logging\", \"event_type\": \"POINT_IN_TIME\", \"metadata\": {\"is_error\": \
             false, \"is_warning\": false, ..\"pid\": 7, \"tid\": 9}}\n"
        );
        assert!(written("k", &PrintedValue::Indices(&[3, 1]), Level::Error).contains("[3,1], \"time_ms\""));
        assert!(
            written("k", &PrintedValue::Names(&[("/a", "1")]), Level::Warning).contains("{\"/a\":\"1\"}")
        );
    }

    proptest::proptest! {
        #[test]
        fn every_line_is_json(key in ".{0,20}", text in ".{0,50}", number: f64, level in 0..3_usize) {
            let level = [Level::Info, Level::Warning, Level::Error][level];
            let mut writer = DetailWriter::new(Vec::new(), 1);
            writer.line(1, level, 1, &key, &PrintedValue::Text(&text)).unwrap();
            writer.line(1, level, 1, &key, &PrintedValue::Real(number)).unwrap();
            let out = String::from_utf8(writer.out).unwrap();
            let first = out.lines().next().unwrap().strip_prefix(":::MLLOG ").unwrap();
            let read: serde_json::Value = serde_json::from_str(first).unwrap();
            proptest::prop_assert_eq!(read["value"].as_str(), Some(text.as_str()));
            proptest::prop_assert_eq!(read["metadata"]["is_error"].as_bool(), Some(level == Level::Error));
        }
    }
}
