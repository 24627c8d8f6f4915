//! The texts of tokens, and the symbols of a transcript: the reference makes them of the text in lower case, without spaces at its ends, and
//! without characters that are not symbols. Does not read merges, because no text is divided into tokens.

use std::{
    io,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_types::benchmark::ENGLISH_SYMBOLS;

use crate::{EngineError, LoadRequest, ModelMismatch};

/// The bytes of each token.
#[derive(Debug)]
pub(super) struct TokenTexts {
    bytes: Vec<u8>,
    /// The end of each token in `bytes`.
    ends: Vec<usize>,
}

/// The error for a file that has no texts of tokens.
#[derive(Debug)]
pub(super) enum TokenTextsError {
    Unreadable(io::Error),
    Unfit(ModelMismatch),
}

impl TokenTextsError {
    /// Returns the error of the engine whose file this is.
    pub(super) fn of(self, file: PathBuf, request: &LoadRequest<'_>) -> EngineError {
        match self {
            Self::Unreadable(source) => EngineError::ModelUnreadable { file, source },
            Self::Unfit(reason) => EngineError::ModelUnfit {
                file,
                benchmark: request.benchmark.name.clone(),
                reason,
            },
        }
    }
}

impl TokenTexts {
    /// Reads a file with `vocabulary` lines, each the bytes of a token in hexadecimal.
    pub(super) fn read(path: &Path, vocabulary: usize) -> Result<Self, TokenTextsError> {
        let text = regular_file::read_text(path).map_err(TokenTextsError::Unreadable)?;
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            let unfit =
                || TokenTextsError::Unfit(format!("line {} is not hexadecimal bytes", number + 1).into());
            let (pairs, rest) = line.as_bytes().as_chunks::<2>();
            if !rest.is_empty() {
                return Err(unfit());
            }
            for pair in pairs {
                let byte = digit(pair[0]).zip(digit(pair[1]));
                bytes.push(byte.map(|(high, low)| 16 * high + low).ok_or_else(unfit)?);
            }
            ends.push(bytes.len());
        }
        if ends.len() != vocabulary {
            let reason = format!("it has {} lines, but there are {vocabulary} tokens", ends.len());
            return Err(TokenTextsError::Unfit(reason.into()));
        }
        Ok(Self { bytes, ends })
    }

    /// Returns the bytes of the longest token.
    pub(super) fn longest(&self) -> usize {
        (0..self.ends.len())
            .map(|token| self.of(token).len())
            .max()
            .unwrap_or(0)
    }

    fn of(&self, token: usize) -> &[u8] {
        let begin = token.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[token]]
    }

    /// Adds the symbols of the tokens' text to `symbols`. `text` is reused memory.
    pub(super) fn transcribe(&self, tokens: &[usize], text: &mut Vec<u8>, symbols: &mut Vec<u8>) {
        text.clear();
        for &token in tokens {
            text.extend_from_slice(self.of(token));
        }
        push_symbols(text, symbols);
    }
}

/// Adds the symbols of a text.
pub(crate) fn push_symbols(text: &[u8], symbols: &mut Vec<u8>) {
    // What follows the last character that is no space is removed.
    let (mut has_begun, mut end) = (false, symbols.len());
    let valid = text.utf8_chunks().flat_map(|chunk| {
        let damaged = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        chunk.valid().chars().chain(damaged)
    });
    for character in valid.flat_map(char::to_lowercase) {
        let is_space = character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character);
        has_begun |= !is_space;
        if !has_begun {
            continue;
        }
        let symbol = ENGLISH_SYMBOLS
            .iter()
            .position(|symbol| char::from(*symbol) == character);
        symbols.extend(symbol.and_then(|symbol| u8::try_from(symbol).ok()));
        if !is_space {
            end = symbols.len();
        }
    }
    symbols.truncate(end);
}

/// Returns the value of a hexadecimal digit.
fn digit(character: u8) -> Option<u8> {
    let value = char::from(character).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(content: &str, vocabulary: usize) -> Result<TokenTexts, TokenTextsError> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tokens.txt");
        fs::write(&path, content).unwrap();
        TokenTexts::read(&path, vocabulary)
    }

    /// Returns the transcript of tokens, given by their texts.
    fn transcript(texts: &[&[u8]]) -> String {
        let lines = texts.iter().map(|text| {
            let digits: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{digits}\n")
        });
        let found = read(&lines.collect::<String>(), texts.len()).unwrap();
        let tokens: Vec<usize> = (0..texts.len()).collect();
        let (mut text, mut symbols) = (Vec::new(), Vec::new());
        found.transcribe(&tokens, &mut text, &mut symbols);
        let letters = symbols
            .iter()
            .map(|symbol| char::from(ENGLISH_SYMBOLS[usize::from(*symbol)]));
        letters.collect()
    }

    /// The expected texts are what the reference's own lines in `reference_SUT.py` answer.
    #[test]
    fn transcripts_are_in_lower_case_without_what_is_no_symbol() {
        assert_eq!(
            transcript(&[b" Mr.", b" Quilter's", b" 5%", b""]),
            "mr quilter's 5%"
        );
        assert_eq!(transcript(&[b"  ", b"\tA", b"\nb \x1c", b" "]), "ab");
        assert_eq!(transcript(&[b" yes", b" ."]), "yes ");
        // The Kelvin sign, in two tokens, and a capital I with a dot become letters of ASCII.
        assert_eq!(transcript(&[b"3 \xe2\x84", b"\xaa, ", "İ".as_bytes()]), "3 k i");
        assert_eq!(transcript(&[b"caf\xc3", b"\xa9", b"\xff!"]), "caf");
        assert_eq!(transcript(&[b" ", b""]), "");
    }

    #[test]
    fn invalid_token_files_are_refused() {
        let refused = |content: &str| match read(content, 2).unwrap_err() {
            TokenTextsError::Unfit(reason) => reason.to_string(),
            TokenTextsError::Unreadable(source) => source.to_string(),
        };
        assert_eq!(refused("61\n"), "it has 1 lines, but there are 2 tokens");
        assert_eq!(refused("61\n6\n"), "line 2 is not hexadecimal bytes");
        assert_eq!(refused("+1\n61\n"), "line 1 is not hexadecimal bytes");
    }
}
