//! The words of a text that ROUGE compares, as `rouge_score` splits and stems them.

use super::stemmer::stem;

/// Returns the words of a text: runs of a to z and 0 to 9 in the lower-case text. Those of more than 3 letters are stemmed.
pub(super) fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    lower
        .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit()))
        .filter(|word| !word.is_empty())
        .map(|word| {
            if word.len() > 3 {
                stem(word)
            } else {
                word.to_owned()
            }
        })
        .filter(|word| !word.is_empty())
        .collect()
}
