//! The data of NLTK's sentence tokenizer for a language, as its `punkt_tab` publishes them: T. Kiss and J. Strunk, "Unsupervised Multilingual
//! Sentence Boundary Detection", Computational Linguistics 32, 2006.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;

/// Larger files are not read: the largest of English has 236 kB.
const MAX: u64 = 64 << 20;

/// The contexts in which a word was seen, as bits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Contexts(u32);

impl Contexts {
    const BEGINNING_UPPER: u32 = 1 << 1;
    const INSIDE_UPPER: u32 = 1 << 2;
    const UNKNOWN_UPPER: u32 = 1 << 3;
    const BEGINNING_LOWER: u32 = 1 << 4;
    const INSIDE_LOWER: u32 = 1 << 5;
    const UNKNOWN_LOWER: u32 = 1 << 6;

    const fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    /// Whether the word was seen in upper case.
    pub(super) const fn upper(self) -> bool {
        self.has(Self::BEGINNING_UPPER | Self::INSIDE_UPPER | Self::UNKNOWN_UPPER)
    }

    /// Whether the word was seen in lower case.
    pub(super) const fn lower(self) -> bool {
        self.has(Self::BEGINNING_LOWER | Self::INSIDE_LOWER | Self::UNKNOWN_LOWER)
    }

    /// Whether the word was seen in upper case inside a sentence.
    pub(super) const fn upper_inside(self) -> bool {
        self.has(Self::INSIDE_UPPER)
    }

    /// Whether the word was seen in lower case at the beginning of a sentence.
    pub(super) const fn lower_at_beginning(self) -> bool {
        self.has(Self::BEGINNING_LOWER)
    }
}

/// The error for data of the sentence tokenizer that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path} is not a file of punkt_tab: {reason}; hint: unpack packages/tokenizers/punkt_tab.zip of nltk_data, see `regatta data show BENCHMARK`",
    path = path.display()
)]
pub struct SentenceModelError {
    /// The file.
    path: PathBuf,
    /// What is wrong.
    reason: String,
}

/// The data of the sentence tokenizer.
#[derive(Debug, Default)]
pub(crate) struct SentenceModel {
    /// Abbreviations, without their last period.
    pub(super) abbreviations: HashSet<String>,
    /// Pairs of words around a period that ends no sentence.
    pub(super) collocations: HashSet<(String, String)>,
    /// Words that often begin a sentence.
    pub(super) starters: HashSet<String>,
    /// The contexts of each word.
    contexts: HashMap<String, Contexts>,
}

impl SentenceModel {
    /// Reads the four files in a language's directory.
    pub(crate) fn read(directory: &Path) -> Result<Self, SentenceModelError> {
        let lines = |name: &str| -> Result<(PathBuf, String), SentenceModelError> {
            let path = directory.join(name);
            let read = regular_file::read(&path, MAX).map_err(|error| error.to_string());
            let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()));
            match text {
                Ok(text) => Ok((path, text)),
                Err(reason) => Err(SentenceModelError { path, reason }),
            }
        };
        let set = |name| Ok(lines(name)?.1.lines().map(str::to_owned).collect());
        let pairs = |name| -> Result<Vec<(String, String)>, SentenceModelError> {
            let (path, text) = lines(name)?;
            let pair = |(number, line): (usize, &str)| match line.split_once('\t') {
                Some((first, second)) => Ok((first.to_owned(), second.to_owned())),
                None => Err(SentenceModelError {
                    path: path.clone(),
                    reason: format!("line {} has no tab", number + 1),
                }),
            };
            text.lines().enumerate().map(pair).collect()
        };
        let contexts = pairs("ortho_context.tab")?.into_iter().map(|(word, bits)| {
            let bits = bits.parse().map_err(|_| SentenceModelError {
                path: directory.join("ortho_context.tab"),
                reason: format!("`{bits}` is not a number"),
            })?;
            Ok((word, Contexts(bits)))
        });
        Ok(Self {
            abbreviations: set("abbrev_types.txt")?,
            collocations: pairs("collocations.tab")?.into_iter().collect(),
            starters: set("sent_starters.txt")?,
            contexts: contexts.collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn contexts(&self, word: &str) -> Contexts {
        self.contexts.get(word).copied().unwrap_or_default()
    }
}
