//! Deserialises the values of plans that are text in the document and have a separate type here, such as `duration = "3s"`. A list of one value may
//! be written without brackets: `scenario = "Offline"` is `scenario = ["Offline"]`. Errors have the type's message and the value's position.

use std::{fmt, fmt::Display, marker::PhantomData, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, SeqAccess, Visitor},
};
use toml::Spanned;

/// Deserialises text that may be missing.
///
/// # Errors
/// Returns the deserializer's error for anything else, and the type's error for text that cannot be parsed.
pub fn optional<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    Text(PhantomData).deserialize(deserializer).map(Some)
}

/// Deserialises text or a list of texts.
///
/// # Errors
/// Returns the deserializer's error for anything else, and the type's error for text that cannot be parsed.
pub fn list<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(List(PhantomData))
}

/// Deserialises text or a list of texts, with their places in the document.
///
/// # Errors
/// Returns the deserializer's error for anything else.
pub fn spanned_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Spanned<String>>, D::Error> {
    let list = Spanned::<OneOrMany>::deserialize(deserializer)?;
    let place = list.span();
    Ok(match list.into_inner() {
        OneOrMany::One(text) => vec![Spanned::new(place, text)],
        OneOrMany::Many(texts) => texts,
    })
}

/// Deserialises one text.
struct Text<T>(PhantomData<T>);

impl<'de, T: FromStr<Err: Display>> DeserializeSeed<'de> for Text<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T: FromStr<Err: Display>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

struct List<T>(PhantomData<T>);

impl<'de, T: FromStr<Err: Display>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        Ok(vec![text.parse().map_err(E::custom)?])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Text(PhantomData))? {
            values.push(value);
        }
        Ok(values)
    }
}

/// What a list expects, in errors.
const EXPECTED: &str = "a string or a list of strings";

/// One text, or the texts of a list with their places.
enum OneOrMany {
    One(String),
    Many(Vec<Spanned<String>>),
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpannedList)
    }
}

struct SpannedList;

impl<'de> Visitor<'de> for SpannedList {
    type Value = OneOrMany;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OneOrMany, E> {
        Ok(OneOrMany::One(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMany, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(OneOrMany::Many(texts))
    }
}
