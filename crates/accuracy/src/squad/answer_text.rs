//! The words of a text from which an answer's tokens come, as `get_final_text` of the reference's `accuracy-squad.py` finds them.

use regatta_datasets::squad::{is_python_space, words};

/// Joins the tokens of an answer to a text in lower case.
pub(super) fn joined<'a>(tokens: impl Iterator<Item = &'a str>) -> String {
    let text = tokens
        .collect::<Vec<_>>()
        .join(" ")
        .replace(" ##", "")
        .replace("##", "");
    text.split(is_python_space)
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the part of `original` that corresponds to `tokens`, or all of it when they cannot be aligned.
pub(super) fn original_text(tokens: &str, original: &str) -> String {
    aligned(tokens, original).unwrap_or_else(|| original.to_owned())
}

/// Aligns the characters that are not spaces, one to one.
fn aligned(tokens: &str, original: &str) -> Option<String> {
    let tokenized = words(original).join(" ");
    let at = tokenized.find(tokens)?;
    let (first, last) = (tokens.chars().next()?, tokens.chars().next_back()?);
    if first == ' ' || last == ' ' {
        return None;
    }
    let letters = |text: &str| text.chars().filter(|&c| c != ' ').count();
    if letters(original) != letters(&tokenized) {
        return None;
    }
    let begin = letters(&tokenized[..at]);
    let end = begin + letters(tokens);
    let mut places = original.char_indices().filter(|&(_, c)| c != ' ');
    let (start, _) = places.clone().nth(begin)?;
    let (stop, last) = places.nth(end - 1)?;
    Some(original[start..stop + last.len_utf8()].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squad_answer_is_a_part_of_the_text() {
        assert_eq!(
            joined(["steve", "smith", "##son", "##", "#"].into_iter()),
            "steve smithson #"
        );
        assert_eq!(original_text("steve smith", "(Steve Smith's"), "Steve Smith");
        assert_eq!(original_text("elan", "Élan vital"), "Élan");
        // Nothing is aligned: other words, and another number of characters.
        assert_eq!(original_text("[UNK]", "\u{1f600} x"), "\u{1f600} x");
        assert_eq!(original_text("x", "a\u{301} x"), "a\u{301} x");
    }
}
