//! Tokens of texts and texts of tokens, for tokenizers with a token for each byte, as GPT-2, GPT-J and Llama 3 have. The tokens are those of the
//! `tokenizers` library, whose file `tokenizer.json` is read. A text that contains the text of a special token is divided like any other text.

mod byte_characters;
mod pieces;

use std::{
    collections::HashMap,
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use serde::Deserialize;
use serde_json::Value;

pub use self::byte_characters::byte_of_characters;
use self::pieces::Division;

/// Why a tokenizer's file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The file is missing or unreadable.
    #[error("cannot read the tokenizer {}; hint: it is published with the model's weights", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file has another form.
    #[error("{} does not describe a tokenizer", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// The tokenizer works in another way.
    #[error("the tokenizer {} is not supported: {reason}; those of GPT-2, GPT-J and Llama 3 are", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        reason: String,
    },
}

/// A text that has no tokens, or tokens that have no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTokens {
    /// The vocabulary does not have a byte of the text.
    #[error("the tokenizer has no token for the byte {0:#04x}")]
    Byte(u8),
    /// The vocabulary does not have the token.
    #[error("the tokenizer has no token {0}")]
    Token(u32),
}

/// `tokenizer.json`. Other fields of it are not needed.
#[derive(Deserialize)]
struct TokenizerFile {
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    vocab: HashMap<String, u32>,
    #[serde(default)]
    merges: Vec<Merge>,
    #[serde(default)]
    ignore_merges: bool,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    special: bool,
}

/// Two tokens that become one: with a space between them, or as a list in newer files.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Text(String),
    Pair([String; 2]),
}

impl Merge {
    fn pair(&self) -> Option<(&str, &str)> {
        match self {
            Self::Text(text) => text.split_once(' '),
            Self::Pair([left, right]) => Some((left, right)),
        }
    }
}

/// A tokenizer.
#[derive(Debug)]
pub struct Tokenizer {
    division: Division,
    /// The tokens of texts, without those that were added to the vocabulary.
    tokens: HashMap<Box<[u8]>, u32>,
    /// The bytes of each token. Special tokens have none.
    texts: HashMap<u32, Box<[u8]>>,
    /// The rank of a pair of tokens, and the token that it becomes. Pairs of lower rank are merged first.
    merges: HashMap<(u32, u32), (usize, u32)>,
    /// Whether a piece that is a token is not made of merges.
    ignores_merges: bool,
}

impl Tokenizer {
    /// Reads a file `tokenizer.json`.
    ///
    /// # Errors
    /// [`TokenizerError`] when the file is missing, damaged, or of a tokenizer that works in another way.
    pub fn read(path: &Path) -> Result<Self, TokenizerError> {
        let file = regular_file::open(path).map_err(|source| TokenizerError::Read {
            path: path.to_owned(),
            source,
        })?;
        let file: TokenizerFile =
            serde_json::from_reader(BufReader::new(file)).map_err(|source| TokenizerError::Form {
                path: path.to_owned(),
                source,
            })?;
        Self::of(file).map_err(|reason| TokenizerError::Unsupported {
            path: path.to_owned(),
            reason,
        })
    }

    fn of(file: TokenizerFile) -> Result<Self, String> {
        if !file.normalizer.is_null() {
            return Err("it changes texts before it divides them".to_owned());
        }
        let division = Division::of(&file.pre_tokenizer);
        let division =
            division.ok_or("the expression by which it divides texts into words is not a known one")?;
        let characters = byte_of_characters();
        let bytes =
            |text: &str| -> Option<Box<[u8]>> { text.chars().map(|c| characters.get(&c).copied()).collect() };
        let mut texts = HashMap::with_capacity(file.model.vocab.len());
        for added in &file.added_tokens {
            let text: &[u8] = if added.special {
                &[]
            } else {
                added.content.as_bytes()
            };
            texts.insert(added.id, text.into());
        }
        let mut tokens = HashMap::with_capacity(file.model.vocab.len());
        for (text, id) in &file.model.vocab {
            if texts.contains_key(id) {
                continue;
            }
            let found = bytes(text)
                .ok_or_else(|| format!("the token {id} has a character that does not represent a byte"))?;
            tokens.insert(found.clone(), *id);
            texts.insert(*id, found);
        }
        let mut merges = HashMap::with_capacity(file.model.merges.len());
        for (rank, merge) in file.model.merges.iter().enumerate() {
            let token = |text: &str| file.model.vocab.get(text).copied();
            let merged = merge.pair().and_then(|(left, right)| {
                Some(((token(left)?, token(right)?), token(&format!("{left}{right}"))?))
            });
            // A pair whose tokens do not exist never occurs.
            if let Some((pair, merged)) = merged {
                merges.entry(pair).or_insert((rank, merged));
            }
        }
        Ok(Self {
            division,
            tokens,
            texts,
            merges,
            ignores_merges: file.model.ignore_merges,
        })
    }

    /// Returns the tokens of a text, without any that begin or end it.
    ///
    /// # Errors
    /// [`NotTokens::Byte`] for a vocabulary that does not have all bytes.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, NotTokens> {
        let mut tokens = Vec::new();
        for piece in self.division.pieces(text) {
            self.add_piece(piece.as_bytes(), &mut tokens)?;
        }
        Ok(tokens)
    }

    /// Adds the tokens of a piece.
    fn add_piece(&self, piece: &[u8], tokens: &mut Vec<u32>) -> Result<(), NotTokens> {
        if self.ignores_merges
            && let Some(token) = self.tokens.get(piece)
        {
            tokens.push(*token);
            return Ok(());
        }
        let token = |byte: &u8| {
            let token = self.tokens.get(std::slice::from_ref(byte)).copied();
            token.ok_or(NotTokens::Byte(*byte))
        };
        let mut parts: Vec<u32> = piece.iter().map(token).collect::<Result<_, _>>()?;
        let first = |parts: &[u32]| {
            let pairs = parts.windows(2).map(|pair| (pair[0], pair[1]));
            pairs
                .filter_map(|pair| self.merges.get(&pair).map(|(rank, token)| (*rank, *token, pair)))
                .min()
        };
        while let Some((_, token, pair)) = first(&parts) {
            let mut left = std::mem::take(&mut parts).into_iter().peekable();
            while let Some(part) = left.next() {
                let is_pair = part == pair.0 && left.next_if_eq(&pair.1).is_some();
                parts.push(if is_pair { token } else { part });
            }
        }
        tokens.extend(parts);
        Ok(())
    }

    /// Returns the bytes of the tokens' text, without special tokens. The bytes of one token need not be complete characters.
    ///
    /// # Errors
    /// [`NotTokens::Token`] for the first token that does not exist.
    pub fn decode(&self, tokens: &[u32]) -> Result<Vec<u8>, NotTokens> {
        let mut bytes = Vec::new();
        for token in tokens {
            bytes.extend_from_slice(self.texts.get(token).ok_or(NotTokens::Token(*token))?);
        }
        Ok(bytes)
    }
}
