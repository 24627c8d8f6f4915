//! The values of detail records, and LoadGen's deviations from JSON.
//!
//! LoadGen writes numbers that JSON cannot represent and does not escape text. It also loses the opening bracket of an empty list
//! or map: it removes the last character as if it were a comma. The intended value is read, and the deviation is named, because
//! the official parsers fail on some of them.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};

/// The maximum number of values in the lists and maps of one record. The largest loaded set has 200,000.
const MAX_ITEMS: usize = 2_000_000;

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

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut left = MAX_ITEMS;
        ValueSeed(&mut left).deserialize(deserializer)
    }
}

/// Reads a value directly into its final form, and counts the values in its lists and maps. A value in memory is many times as large as its
/// text, for example `0,`.
struct ValueSeed<'a>(&'a mut usize);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(u64::try_from(value).map_or(Value::Signed(value), Value::Unsigned))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(ValueSeed(self.0))? {
            count_item(self.0)?;
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut values = BTreeMap::new();
        while let Some(key) = fields.next_key()? {
            let value = fields.next_value_seed(ValueSeed(self.0))?;
            count_item(self.0)?;
            values.insert(key, value);
        }
        Ok(Value::Map(values))
    }
}

fn count_item<E: de::Error>(left: &mut usize) -> Result<(), E> {
    *left = left
        .checked_sub(1)
        .ok_or_else(|| E::custom(format_args!("the value has more than {MAX_ITEMS} parts")))?;
    Ok(())
}
