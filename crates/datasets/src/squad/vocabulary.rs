//! BERT's vocabulary and its WordPiece tokens, as `BertTokenizer` of the transformers library 4 computes them.

use std::collections::HashMap;

use super::words::{SPECIAL, words};

/// Longer words, in characters, are unknown.
const MAX_WORD: usize = 100;

/// Why a file is not the vocabulary of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VocabularyError {
    /// The file is not UTF-8 text.
    #[error(transparent)]
    Encoding(#[from] std::str::Utf8Error),
    /// It has too few or too many tokens.
    #[error("it has {found} tokens, but the network's has {expected}")]
    Count {
        /// The number of tokens in the file.
        found: usize,
        /// The number of tokens of the network.
        expected: usize,
    },
    /// A special token is missing.
    #[error("it has no token {0}")]
    MissingToken(String),
    /// The padding token is not the first one.
    #[error("[PAD] is not its first token")]
    Padding,
    /// A token has a capital letter.
    #[error("its token {0} has a capital letter, but the network reads lower case")]
    Cased(String),
}

/// A vocabulary. A token's id is its line, counted from 0.
#[derive(Debug)]
pub struct Vocabulary {
    tokens: Vec<String>,
    ids: HashMap<String, i32>,
    unknown: i32,
    /// The token before a question.
    pub begin: i32,
    /// The token after a question and after a text.
    pub separator: i32,
}

impl Vocabulary {
    /// Parses `vocab.txt`, which must have `expected` lines.
    ///
    /// # Errors
    /// Returns [`VocabularyError`] when the text is another model's vocabulary.
    pub fn parse(text: &str, expected: usize) -> Result<Self, VocabularyError> {
        // Python reads all three kinds of line ends.
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let tokens: Vec<String> = text
            .strip_suffix('\n')
            .unwrap_or(&text)
            .split('\n')
            .map(str::to_owned)
            .collect();
        if tokens.len() != expected {
            return Err(VocabularyError::Count {
                found: tokens.len(),
                expected,
            });
        }
        let ids: HashMap<String, i32> = tokens.iter().cloned().zip(0..).collect();
        let id = |token: &str| {
            ids.get(token)
                .copied()
                .ok_or_else(|| VocabularyError::MissingToken(token.to_owned()))
        };
        let [padding, unknown, begin, separator, _mask] = SPECIAL.map(id);
        if padding? != 0 {
            return Err(VocabularyError::Padding);
        }
        if let Some(cased) = tokens.iter().find(|token| is_cased(token)) {
            return Err(VocabularyError::Cased(cased.clone()));
        }
        let (unknown, begin, separator) = (unknown?, begin?, separator?);
        Ok(Self {
            tokens,
            ids,
            unknown,
            begin,
            separator,
        })
    }

    /// Returns the text of a token.
    pub fn text(&self, id: i32) -> &str {
        usize::try_from(id)
            .ok()
            .and_then(|id| self.tokens.get(id))
            .map_or("", String::as_str)
    }

    /// Returns the tokens of a text.
    pub fn tokenize(&self, text: &str) -> Vec<i32> {
        let (mut ids, mut rest) = (Vec::new(), text);
        while let Some((at, special)) = first_special(rest) {
            self.push_words(&rest[..at], &mut ids);
            ids.push(self.ids.get(special).copied().unwrap_or(self.unknown));
            rest = &rest[at + special.len()..];
        }
        self.push_words(rest, &mut ids);
        ids
    }

    fn push_words(&self, text: &str, ids: &mut Vec<i32>) {
        // The library converts every character by itself, unlike the basic tokenizer.
        let lower: String = text.chars().flat_map(char::to_lowercase).collect();
        for word in words(&lower) {
            self.push_pieces(&word, ids);
        }
    }

    /// Adds the longest tokens that a word consists of, or the unknown token.
    fn push_pieces(&self, word: &str, ids: &mut Vec<i32>) {
        let known = ids.len();
        let mut ends: Vec<usize> = word.char_indices().map(|(at, _)| at).skip(1).collect();
        ends.push(word.len());
        let (mut start, mut piece) = (0, String::new());
        while start < word.len() && ends.len() <= MAX_WORD {
            let found = ends
                .iter()
                .rev()
                .take_while(|&&end| end > start)
                .find_map(|&end| {
                    piece.clear();
                    piece.push_str(if start > 0 { "##" } else { "" });
                    piece.push_str(&word[start..end]);
                    Some((end, *self.ids.get(&piece)?))
                });
            let Some((end, id)) = found else { break };
            ids.push(id);
            start = end;
        }
        if start < word.len() {
            ids.truncate(known);
            ids.push(self.unknown);
        }
    }
}

fn is_cased(token: &str) -> bool {
    let is_special = token.starts_with('[') && token.ends_with(']');
    !is_special && token.chars().any(|c| c.is_ascii_uppercase())
}

/// Returns the first special token of a text, with its position.
fn first_special(text: &str) -> Option<(usize, &'static str)> {
    let found = SPECIAL
        .iter()
        .filter_map(|special| Some((text.find(special)?, *special)));
    found.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwell\n##ing\n##s\nσ\n##σ\n,\nw\n";

    fn pieces(text: &str) -> String {
        let vocabulary = Vocabulary::parse(TOKENS, 12).unwrap();
        let ids = vocabulary.tokenize(text);
        ids.into_iter()
            .map(|id| vocabulary.text(id))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn words_are_split_into_the_longest_tokens() {
        assert_eq!(pieces("Wellings, Well-ings"), "well ##ing ##s , well [UNK] [UNK]");
        assert_eq!(pieces("ΣΣ Σ"), "σ ##σ σ");
        assert_eq!(
            pieces("[SEP]well[MASK] [sep]"),
            "[SEP] well [MASK] [UNK] [UNK] [UNK]"
        );
        assert_eq!(
            pieces(&format!("well{}", "s".repeat(96))).len(),
            "well".len() + 96 * " ##s".len()
        );
        assert_eq!(pieces(&format!("well{}", "s".repeat(97))), "[UNK]");
        assert_eq!(pieces("\u{200b} \n"), "");
    }

    #[test]
    fn another_models_vocabulary_is_refused() {
        let refused = |text: &str, expected| Vocabulary::parse(text, expected).unwrap_err().to_string();
        let faults = [
            refused(TOKENS, 30522),
            refused(&TOKENS.replace("[SEP]", "</s>"), 12),
            refused(&TOKENS.replace("[PAD]\n[UNK]", "[UNK]\n[PAD]"), 12),
            refused(&TOKENS.replace("well", "Well"), 12),
        ];
        assert_eq!(
            faults,
            [
                "it has 12 tokens, but the network's has 30522",
                "it has no token [SEP]",
                "[PAD] is not its first token",
                "its token Well has a capital letter, but the network reads lower case",
            ]
        );
        assert!(Vocabulary::parse(&TOKENS.replace('\n', "\r\n"), 12).is_ok());
    }
}
