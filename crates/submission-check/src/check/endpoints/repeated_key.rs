//! Finds a key that an object of a JSON document has twice. Readers use one of the two values without a word.

use std::{collections::BTreeSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

/// Returns the key and its place, as a message, or `None` if every key is unique or the document is not JSON.
pub(super) fn find(json: &[u8]) -> Option<String> {
    match serde_json::from_slice::<UniqueKeys>(json) {
        Err(error) if error.is_data() => Some(error.to_string()),
        _ => None,
    }
}

/// Any JSON value in which no object has a key twice.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self, A::Error> {
        while values.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            fields.next_value::<Self>()?;
            if names.contains(&name) {
                return Err(A::Error::custom(format_args!("duplicate key `{name}`")));
            }
            names.insert(name);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_repeated_key_is_named_with_its_line() {
        let repeated = find(b"{\"a\": [{\"b\": 1,\n\"c\": null, \"b\": 2}]}").unwrap();
        assert!(repeated.starts_with("duplicate key `b` at line 2"), "{repeated}");
        assert_eq!(find(b"{\"a\": {\"b\": 1}, \"b\": {\"b\": 2.5, \"c\": -1}}"), None);
        assert_eq!(find(b"{\"a\": "), None);
    }
}
