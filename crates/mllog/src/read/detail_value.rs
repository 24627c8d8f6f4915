//! The values of detail records, and LoadGen's deviations from JSON.
//!
//! LoadGen writes numbers that JSON cannot represent and does not escape text. It also loses the opening bracket of an empty list
//! or map: it removes the last character as if it were a comma. The intended value is read, and the deviation is named, because
//! the official parsers fail on some of them.

use std::collections::BTreeMap;

/// The value of a detail record.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// JSON's `null`, which LoadGen never writes.
    Null,
    /// A boolean, for example `effective_print_timestamps`.
    Bool(bool),
    /// Counts, seeds (the full 64 bits) and nanoseconds.
    Unsigned(u64),
    /// A negative integer.
    Signed(i64),
    /// Rates and percentiles, and integers beyond 64 bits.
    Float(f64),
    /// Names, versions and messages.
    Text(String),
    /// A list, for example `loaded_qsl_set`.
    List(Vec<Value>),
    /// A map, for example `loadgen_file_sha1`.
    Map(BTreeMap<String, Value>),
}

/// A deviation of a value from JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// A number that is not finite: `Infinity`, `-Infinity` or `NaN`; also `nan` and `-nan`.
    ///
    /// Python's JSON parser, which the official tools use, accepts the first three.
    NonFinite,
    /// Text with an unescaped quote or backslash. The official tools stop with an error.
    UnescapedText,
    /// `]` for an empty list. The official tools stop with an error.
    EmptyList,
    /// `}` for an empty map. The official tools stop with an error.
    EmptyMap,
}

impl Value {
    /// Reads a value that LoadGen writes but strict JSON does not allow.
    pub(super) fn from_quirk(written: &str) -> Option<(Self, Quirk)> {
        match written {
            "Infinity" => Some((Self::Float(f64::INFINITY), Quirk::NonFinite)),
            "-Infinity" => Some((Self::Float(f64::NEG_INFINITY), Quirk::NonFinite)),
            "NaN" | "-nan" | "nan" => Some((Self::Float(f64::NAN), Quirk::NonFinite)),
            "]" => Some((Self::List(Vec::new()), Quirk::EmptyList)),
            "}" => Some((Self::Map(BTreeMap::new()), Quirk::EmptyMap)),
            _ => {
                let inner = written.strip_prefix('"')?.strip_suffix('"')?;
                Some((Self::Text(inner.to_owned()), Quirk::UnescapedText))
            }
        }
    }

    /// Returns the value if it is a boolean.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self {
            Some(*value)
        } else {
            None
        }
    }

    /// Returns the value if it is an integer from 0 to 2^64 - 1.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        if let Self::Unsigned(value) = self {
            Some(*value)
        } else {
            None
        }
    }

    /// Returns the value if it is a number. Integers beyond 2^53 are rounded.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Unsigned(value) => Some(*value as f64),
            Self::Signed(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the value if it is a text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(value) = self {
            Some(value)
        } else {
            None
        }
    }

    /// Returns the value if it is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(values) = self {
            Some(values)
        } else {
            None
        }
    }
}

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::Number(number) => number
                .as_u64()
                .map(Self::Unsigned)
                .or_else(|| number.as_i64().map(Self::Signed))
                .unwrap_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN))),
            serde_json::Value::String(text) => Self::Text(text),
            serde_json::Value::Array(values) => Self::List(values.into_iter().map(Self::from).collect()),
            serde_json::Value::Object(map) => Self::Map(
                map.into_iter()
                    .map(|(key, value)| (key, Self::from(value)))
                    .collect(),
            ),
        }
    }
}
