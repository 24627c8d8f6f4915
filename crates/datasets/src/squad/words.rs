//! BERT's basic tokenizer: words and punctuation marks of a text, in lower case and without accents. It knows no vocabulary.

use unicode_normalization::UnicodeNormalization as _;

use super::characters::{is_accent, is_ideograph, is_punctuation, is_python_space, is_removed, is_space};

/// Tokens with a special meaning, which are never split.
pub(super) const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// Splits a text as `BasicTokenizer` of `tokenization.py` does, which `accuracy-squad.py` uses.
pub fn words(text: &str) -> Vec<String> {
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars().filter(|&c| !is_removed(c)) {
        if is_space(c) {
            cleaned.push(' ');
        } else if is_ideograph(c) {
            cleaned.extend([' ', c, ' ']);
        } else {
            cleaned.push(c);
        }
    }
    let mut words = Vec::new();
    for word in cleaned.split(is_python_space).filter(|word| !word.is_empty()) {
        if SPECIAL.contains(&word) {
            words.push(word.to_owned());
            continue;
        }
        // The whole word at once: a capital sigma at its end has a small letter of its own.
        let plain: String = word.to_lowercase().nfd().filter(|&c| !is_accent(c)).collect();
        push_parts(&plain, &mut words);
    }
    words
}

/// Splits a word at its punctuation marks.
fn push_parts(word: &str, words: &mut Vec<String>) {
    let mut is_open = false;
    for c in word.chars() {
        if is_open && !is_punctuation(c) {
            if let Some(last) = words.last_mut() {
                last.push(c);
            }
            continue;
        }
        words.push(c.to_string());
        is_open = !is_punctuation(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_basic_tokenizer() {
        let text =
            "Hello,\u{a0}WORLD!\u{200b} \u{1c}Élan 東京x ΣΟΦΟΣ\u{7} [SEP][sep] [CLS] İ\u{2028}n\u{fffd}o 한";
        assert_eq!(
            words(text),
            [
                "hello",
                ",",
                "world",
                "!",
                "elan",
                "東",
                "京",
                "x",
                "σοφος",
                "[",
                "sep",
                "]",
                "[",
                "sep",
                "]",
                "[CLS]",
                "i",
                "no",
                "\u{1112}\u{1161}\u{11ab}"
            ]
        );
    }
}
