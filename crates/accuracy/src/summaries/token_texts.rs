//! The texts of a language model's tokens, as `batch_decode` of transformers 4.46 makes them with `skip_special_tokens=True`. For tokenizers
//! with a token for each byte, as GPT-2 and Llama 3 have. Splits no text into tokens.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_tokenizer::byte_of_characters;
use serde::{Deserialize, de::DeserializeOwned};

/// The class of tokenizers that join all tokens. Others put a space around tokens that were added to the vocabulary.
const FAST: &str = "PreTrainedTokenizerFast";

/// Texts and what replaces them when the tokenizer cleans up spaces.
const SPACES: [(&str, &str); 10] = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

/// The error for a tokenizer's file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A file is missing or unreadable.
    #[error("cannot read {path}; hint: it is published with the model's weights, see `regatta data show BENCHMARK`", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file has another form.
    #[error("{path} describes no tokenizer", path = path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The cause, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// A token's text has a character that encodes no byte.
    #[error("{path} is not a tokenizer of bytes: the token {id} has the character {character:?}", path = path.display())]
    Character {
        /// The file.
        path: PathBuf,
        /// The token.
        id: usize,
        character: char,
    },
}

/// `tokenizer.json`. Other fields of it are not needed.
#[derive(Deserialize)]
struct Tokenizer {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    vocab: HashMap<String, usize>,
}

#[derive(Deserialize)]
struct AddedToken {
    id: usize,
    content: String,
    special: bool,
}

/// `tokenizer_config.json`.
#[derive(Deserialize)]
struct TokenizerConfig {
    #[serde(default)]
    clean_up_tokenization_spaces: bool,
    tokenizer_class: Option<String>,
}

/// The decoded form of a token.
#[derive(Debug, Clone)]
enum TokenText {
    Unknown,
    Bytes(Box<[u8]>),
    /// A text that was added to the vocabulary.
    Added(Box<str>),
    /// Begins or ends a text, and has none.
    Special,
}

#[derive(Debug)]
pub(crate) struct TokenTexts {
    texts: Vec<TokenText>,
    has_clean_spaces: bool,
    is_fast: bool,
}

impl TokenTexts {
    /// Reads `tokenizer.json` and `tokenizer_config.json` in a directory.
    pub(crate) fn read(directory: &Path) -> Result<Self, TokenizerError> {
        let path = directory.join("tokenizer.json");
        let tokenizer: Tokenizer = read_json(&path)?;
        let config: TokenizerConfig = read_json(&directory.join("tokenizer_config.json"))?;
        let ids = tokenizer.model.vocab.values().copied();
        let added = tokenizer.added_tokens.iter().map(|token| token.id);
        // A vocabulary has no gaps, so that its size bounds the identifiers.
        let most = 2 * (tokenizer.model.vocab.len() + tokenizer.added_tokens.len());
        let length = ids
            .chain(added)
            .filter(|&id| id < most)
            .max()
            .map_or(0, |id| id + 1);
        let mut texts = vec![TokenText::Unknown; length];
        let bytes = byte_of_characters();
        for (text, id) in &tokenizer.model.vocab {
            let found: Result<Box<[u8]>, char> =
                text.chars().map(|c| bytes.get(&c).copied().ok_or(c)).collect();
            let found = match found {
                Ok(found) => TokenText::Bytes(found),
                // Its text is replaced below.
                Err(_) if tokenizer.added_tokens.iter().any(|token| token.id == *id) => TokenText::Unknown,
                Err(character) => {
                    return Err(TokenizerError::Character {
                        path,
                        id: *id,
                        character,
                    });
                }
            };
            if let Some(place) = texts.get_mut(*id) {
                *place = found;
            }
        }
        for token in tokenizer.added_tokens {
            if let Some(place) = texts.get_mut(token.id) {
                *place = if token.special {
                    TokenText::Special
                } else {
                    TokenText::Added(token.content.into())
                };
            }
        }
        Ok(Self {
            texts,
            has_clean_spaces: config.clean_up_tokenization_spaces,
            is_fast: config.tokenizer_class.is_some_and(|class| class == FAST),
        })
    }

    /// Returns the text of tokens, or the first token that does not exist.
    pub(super) fn decode(&self, tokens: impl Iterator<Item = i64>) -> Result<String, i64> {
        let (mut text, mut bytes) = (String::new(), Vec::new());
        let mut append = |piece: &str| {
            if !self.is_fast && !text.is_empty() && !piece.is_empty() {
                text.push(' ');
            }
            text.push_str(piece);
        };
        for token in tokens {
            let found = usize::try_from(token).ok().and_then(|id| self.texts.get(id));
            match found {
                None | Some(TokenText::Unknown) => return Err(token),
                Some(TokenText::Special) => {}
                Some(TokenText::Bytes(found)) => bytes.extend_from_slice(found),
                Some(TokenText::Added(found)) if self.is_fast => bytes.extend_from_slice(found.as_bytes()),
                Some(TokenText::Added(found)) => {
                    append(&String::from_utf8_lossy(&bytes));
                    bytes.clear();
                    append(found);
                }
            }
        }
        append(&String::from_utf8_lossy(&bytes));
        if self.has_clean_spaces {
            for (spaced, clean) in SPACES {
                if text.contains(spaced) {
                    text = text.replace(spaced, clean);
                }
            }
        }
        Ok(text)
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, TokenizerError> {
    let file: File = regular_file::open(path).map_err(|source| TokenizerError::Read {
        path: path.to_owned(),
        source,
    })?;
    serde_json::from_reader(BufReader::new(file)).map_err(|source| TokenizerError::Form {
        path: path.to_owned(),
        source,
    })
}
