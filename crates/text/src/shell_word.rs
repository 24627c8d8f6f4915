//! Words as a POSIX shell reads them. It starts no shell.

use std::borrow::Cow;

/// Returns a word in single quotes, as a POSIX shell reads it.
#[must_use]
pub fn quote_for_shell(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns a word as it is if a shell reads it so, otherwise in single quotes.
///
/// ```
/// use regatta_text::quote_for_shell_if_needed as quote;
/// assert_eq!(["lab/x.toml", "", "a b", "it's"].map(|word| quote(word).into_owned()), ["lab/x.toml", "''", "'a b'", r"'it'\''s'"]);
/// ```
#[must_use]
pub fn quote_for_shell_if_needed(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(quote_for_shell(word))
    }
}
