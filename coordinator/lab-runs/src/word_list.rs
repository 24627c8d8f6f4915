//! Reads the lists of a plan, where one word needs no brackets: `scenario = "Offline"` is `scenario = ["Offline"]`.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};
use toml::Spanned;

/// Reads a word or a list of words.
///
/// # Errors
/// Returns the deserializer's error for anything else.
pub(crate) fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match WordList::<String>::deserialize(deserializer)? {
        WordList::One(word) => vec![word],
        WordList::Many(words) => words,
    })
}

/// Reads a word or a list of words with their places in the text.
///
/// # Errors
/// Returns the deserializer's error for anything else.
pub fn spanned_words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Spanned<String>>, D::Error> {
    let list = Spanned::<WordList<Spanned<String>>>::deserialize(deserializer)?;
    let place = list.span();
    Ok(match list.into_inner() {
        WordList::One(word) => vec![Spanned::new(place, word)],
        WordList::Many(words) => words,
    })
}

/// One word, or the words of a list.
enum WordList<T> {
    One(String),
    Many(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WordList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = WordList<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word or a list of words")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<WordList<T>, E> {
        Ok(WordList::One(word.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<WordList<T>, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = list.next_element()? {
            words.push(word);
        }
        Ok(WordList::Many(words))
    }
}
