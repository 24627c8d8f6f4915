//! Parses a line of a detail log without copying parts that a check does not keep. Most of a log is lists of sample indices.
//!
//! It only accepts strict JSON. `regatta_mllog::read` parses other lines and reports their errors.

use std::{borrow::Cow, fmt};

use regatta_mllog::read::Value;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// The fields of a record that checks use.
#[derive(Debug, Deserialize)]
pub(super) struct Record<'a> {
    #[serde(borrow)]
    pub(super) key: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) value: Scalar<'a>,
    pub(super) metadata: Metadata,
}

#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) is_error: bool,
}

/// A value that a check may use. Lists and maps are only recognised, not stored.
#[derive(Debug)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(Cow<'a, str>),
    Bulk,
}

impl Scalar<'_> {
    /// Converts to an owned value. Returns `None` for lists and maps.
    pub(super) fn kept(self) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Unsigned(value) => Value::Unsigned(value),
            Self::Signed(value) => Value::Signed(value),
            Self::Float(value) => Value::Float(value),
            Self::Text(text) => Value::Text(text.into_owned()),
            Self::Bulk => return None,
        })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Take)
    }
}

struct Take;

impl<'de> Visitor<'de> for Take {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Scalar::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Scalar::Signed(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Scalar::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Bulk)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Bulk)
    }
}
