//! What a detail record holds, and LoadGen's departures from JSON in writing it.
//!
//! LoadGen writes numbers that JSON has no word for, does not escape text, and loses the opening bracket of an empty
//! list or map (it takes off the last character, meaning a comma). Such a value is read for what was meant, and the
//! departure is named, because the official parsers refuse some of them.

use std::collections::BTreeMap;

/// A value in a detail record.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// JSON's `null`, which LoadGen never writes.
    Null,
    /// Such as `effective_print_timestamps`.
    Bool(bool),
    /// Counts, seeds (the full 64 bits) and nanoseconds.
    Unsigned(u64),
    /// A number below zero.
    Signed(i64),
    /// Rates and percentiles; also an integer beyond 64 bits.
    Float(f64),
    /// Names, versions, messages.
    Text(String),
    /// Such as `loaded_qsl_set`.
    List(Vec<Value>),
    /// Such as `loadgen_file_sha1`.
    Map(BTreeMap<String, Value>),
}

/// How a value departs from JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// `Infinity`, `-Infinity` or `NaN`. Python's parser, which the official tools use, reads them.
    NonFinite,
    /// Text with a quote or backslash that is not escaped. The official tools stop with an error.
    UnescapedText,
    /// `]` for an empty list. The official tools stop with an error.
    EmptyList,
    /// `}` for an empty map. The official tools stop with an error.
    EmptyMap,
}

impl Value {
    /// Reads a value that strict JSON does not admit but LoadGen writes.
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

    /// The value where it is true or false.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self {
            Some(*value)
        } else {
            None
        }
    }

    /// The value where it is an integer from 0 to 2^64 - 1.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        if let Self::Unsigned(value) = self {
            Some(*value)
        } else {
            None
        }
    }

    /// The value where it is any number; integers beyond 2^53 are rounded.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Unsigned(value) => Some(*value as f64),
            Self::Signed(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The value where it is text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(value) = self {
            Some(value)
        } else {
            None
        }
    }

    /// The value where it is a list.
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
