//! The common part of all pages' queries: values from a list of words, and short texts.

/// The longest text of a query, in characters.
pub(super) const MAX_TEXT: usize = 100;

/// A query that the page does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is one of: {}", .words.join(", "))]
pub(super) struct InvalidQuery {
    name: &'static str,
    words: Vec<&'static str>,
}

/// Returns the known word that a value is, or `None` for an empty one.
///
/// # Errors
/// Returns [`InvalidQuery`] for an unknown word.
pub(super) fn one_of(
    name: &'static str,
    value: &str,
    words: &[&'static str],
) -> Result<Option<&'static str>, InvalidQuery> {
    if value.is_empty() {
        return Ok(None);
    }
    let found = words.iter().find(|word| **word == value);
    found.map(|word| Some(*word)).ok_or_else(|| InvalidQuery {
        name,
        words: words.to_vec(),
    })
}

/// Returns a text without white space around it, cut to [`MAX_TEXT`].
pub(super) fn short(text: &str) -> &str {
    let text = text.trim();
    let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}
