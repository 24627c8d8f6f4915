//! English text as the `EnglishTextNormalizer` of `openai-whisper` 20250625 leaves it: without hesitations and contractions, with numbers in
//! figures and American spellings. Only for texts of the symbols of a transcript of Whisper: small letters, digits, spaces and `'$%+-`.
//!
//! The spellings are a file of that package.

mod number_words;
mod numbers;
mod pattern;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regex::Regex;

use self::{numbers::NumberNormalizer, pattern::pattern};

/// Words that are removed.
const HESITATIONS: &str = r"\b(hmm|mm|mhm|mmm|uh|um)\b";

/// Contractions with their full forms, in the order of replacement.
const CONTRACTIONS: [(&str, &str); 49] = [
    (r"\bwon't\b", "will not"),
    (r"\bcan't\b", "can not"),
    (r"\blet's\b", "let us"),
    (r"\bain't\b", "aint"),
    (r"\by'all\b", "you all"),
    (r"\bwanna\b", "want to"),
    (r"\bgotta\b", "got to"),
    (r"\bgonna\b", "going to"),
    (r"\bi'ma\b", "i am going to"),
    (r"\bimma\b", "i am going to"),
    (r"\bwoulda\b", "would have"),
    (r"\bcoulda\b", "could have"),
    (r"\bshoulda\b", "should have"),
    (r"\bma'am\b", "madam"),
    (r"\bmr\b", "mister "),
    (r"\bmrs\b", "missus "),
    (r"\bst\b", "saint "),
    (r"\bdr\b", "doctor "),
    (r"\bprof\b", "professor "),
    (r"\bcapt\b", "captain "),
    (r"\bgov\b", "governor "),
    (r"\bald\b", "alderman "),
    (r"\bgen\b", "general "),
    (r"\bsen\b", "senator "),
    (r"\brep\b", "representative "),
    (r"\bpres\b", "president "),
    (r"\brev\b", "reverend "),
    (r"\bhon\b", "honorable "),
    (r"\basst\b", "assistant "),
    (r"\bassoc\b", "associate "),
    (r"\blt\b", "lieutenant "),
    (r"\bcol\b", "colonel "),
    (r"\bjr\b", "junior "),
    (r"\bsr\b", "senior "),
    (r"\besq\b", "esquire "),
    (r"'d been\b", " had been"),
    (r"'s been\b", " has been"),
    (r"'d gone\b", " had gone"),
    (r"'s gone\b", " has gone"),
    (r"'d done\b", " had done"),
    (r"'s got\b", " has got"),
    (r"n't\b", " not"),
    (r"'re\b", " are"),
    (r"'s\b", " is"),
    (r"'d\b", " would"),
    (r"'ll\b", " will"),
    (r"'t\b", " not"),
    (r"'ve\b", " have"),
    (r"'m\b", " am"),
];

/// The error for a file of spellings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpellingsError {
    /// It is missing or cannot be read.
    #[error("{path} cannot be read; hint: it is whisper/normalizers/english.json of the Python package openai-whisper", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// It is not a list of spellings.
    #[error("{path} has no spellings; hint: it is whisper/normalizers/english.json of the Python package openai-whisper", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        #[source]
        source: serde_json::Error,
    },
}

/// The normaliser.
pub(crate) struct EnglishNormalizer {
    hesitations: Regex,
    space_before_apostrophe: Regex,
    contractions: Vec<(Regex, &'static str)>,
    numbers: NumberNormalizer,
    spellings: HashMap<String, String>,
    symbol_without_number: Regex,
    percent_without_number: Regex,
}

impl EnglishNormalizer {
    /// Reads the spellings: a JSON object from British to American ones.
    ///
    /// # Errors
    /// [`SpellingsError`].
    pub(crate) fn read(path: &Path) -> Result<Self, SpellingsError> {
        let bytes =
            regular_file::read(path, regular_file::MAX_TEXT).map_err(|source| SpellingsError::Read {
                path: path.to_owned(),
                source,
            })?;
        let spellings = serde_json::from_slice(&bytes).map_err(|source| SpellingsError::Parse {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self::new(spellings))
    }

    pub(crate) fn new(spellings: HashMap<String, String>) -> Self {
        let contractions = CONTRACTIONS.iter().map(|(from, to)| (pattern(from), *to));
        Self {
            hesitations: pattern(HESITATIONS),
            space_before_apostrophe: pattern(r"\s+'"),
            contractions: contractions.collect(),
            numbers: NumberNormalizer::new(),
            spellings,
            symbol_without_number: pattern(r"[.$¢€£]([^0-9])"),
            percent_without_number: pattern(r"([^0-9])%"),
        }
    }

    /// Returns the text's words after normalisation.
    pub(crate) fn words(&self, text: &str) -> Vec<String> {
        let text = self.hesitations.replace_all(text, "");
        let mut text = self.space_before_apostrophe.replace_all(&text, "'").into_owned();
        for (from, to) in &self.contractions {
            text = from.replace_all(&text, *to).into_owned();
        }
        let text = text.replace(['\'', '+', '-'], " ");
        let text = self.numbers.normalize(&text);
        let words = text.split_whitespace();
        let spelt: Vec<&str> = words
            .map(|word| self.spellings.get(word).map_or(word, String::as_str))
            .collect();
        let text = spelt.join(" ");
        let text = self.symbol_without_number.replace_all(&text, " ${1}");
        let text = self.percent_without_number.replace_all(&text, "${1} ");
        text.split_whitespace().map(str::to_owned).collect()
    }
}
