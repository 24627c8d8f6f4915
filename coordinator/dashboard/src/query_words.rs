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

/// Returns the one of `known` whose word a value is, or `None` for an empty value.
///
/// # Errors
/// Returns [`InvalidQuery`] for an unknown word.
pub(super) fn one_of<T: Copy>(
    name: &'static str,
    value: &str,
    known: &[T],
    word: fn(T) -> &'static str,
) -> Result<Option<T>, InvalidQuery> {
    if value.is_empty() {
        return Ok(None);
    }
    let found = known.iter().copied().find(|known| word(*known) == value);
    found.map(Some).ok_or_else(|| InvalidQuery {
        name,
        words: known.iter().map(|known| word(*known)).collect(),
    })
}

/// Returns a text without white space around it, cut to [`MAX_TEXT`].
pub(super) fn short(text: &str) -> &str {
    let text = text.trim();
    let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}
