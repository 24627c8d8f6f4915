//! ROUGE of generated summaries, as the reference's `evaluation.py` of GPT-J and Llama 3.1 prints it. The log is read entry by entry.

mod pairwise;
mod rouge;
mod sentence_model;
mod sentence_tokens;
mod sentences;
mod stemmer;
mod token_texts;
mod words;

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_mllog::read::{AccuracyEntry, AccuracyLogError};
use regatta_types::accuracy_line::rouge_line;
use serde::Deserialize;

use self::{pairwise::mean, rouge::Rouge, sentences::sentences};
pub(crate) use self::{sentence_model::SentenceModel, token_texts::TokenTexts};
pub use self::{sentence_model::SentenceModelError, token_texts::TokenizerError};
use regatta_datasets::squad::is_python_space;

/// The figures of all summaries. Its `Display` is the official script's line.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryScore {
    /// ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum in percent, rounded to four decimal places.
    pub rouge: [f64; 4],
    /// The characters of all summaries.
    pub characters: u64,
    /// The number of samples with a response.
    pub summaries: usize,
    /// The number of further responses to the same samples, which do not count.
    pub duplicates: usize,
    /// The indices of the samples without a response, ascending.
    pub missing: Vec<usize>,
}

impl SummaryScore {
    /// Returns the figures after ROUGE-1 by their official names.
    #[must_use]
    pub fn further(&self) -> [(&'static str, f64); 4] {
        let [_, two, longest, sum] = self.rouge;
        // The characters of 13,368 summaries are far from 2^53.
        let characters = self.characters as f64;
        [
            ("ROUGE2", two),
            ("ROUGEL", longest),
            ("ROUGELSUM", sum),
            ("GEN_LEN", characters),
        ]
    }
}

impl fmt::Display for SummaryScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&rouge_line(self.rouge, self.characters, self.summaries as u64))
    }
}

/// The type of a response's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenType {
    /// Four bytes.
    Int32,
    /// Eight bytes, the script's default.
    Int64,
}

/// The error when the summaries cannot be judged. Entries count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryScoreError {
    /// The log cannot be read.
    #[error("the accuracy log cannot be read")]
    Log(#[from] AccuracyLogError),
    /// The log has no entry.
    #[error("the accuracy log has no entry; hint: run in AccuracyOnly or SubmissionRun mode")]
    NoEntry,
    /// An entry names a sample that the dataset does not have.
    #[error(
        "entry {entry} is for sample {index}, but there are {samples} samples; hint: use the summaries of this dataset"
    )]
    UnknownSample {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        samples: usize,
    },
    /// A response has a part of a token.
    #[error(
        "the response in entry {entry} (sample {index}) has {bytes} bytes, which is not a multiple of a token's size; hint: --dtype int32 or int64"
    )]
    Length {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        /// The bytes of the response.
        bytes: usize,
    },
    /// A response has a token that does not exist.
    #[error(
        "the response in entry {entry} (sample {index}) has the token {token}, which is not in the tokenizer; hint: --dtype int32 or int64, or the tokenizer of this model"
    )]
    Token {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        token: i64,
    },
}

/// The error for expected summaries that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpectedSummaryError {
    /// The file is missing or unreadable.
    #[error("cannot read {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file has another form.
    #[error("{path} is not an array of objects with a text `output`", path = path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The cause, with line and column.
        #[source]
        source: serde_json::Error,
    },
}

/// What summaries are judged with.
#[derive(Debug)]
pub(crate) struct SummaryJudge {
    /// The expected summary of each sample.
    pub(crate) expected: Vec<String>,
    pub(crate) tokens: TokenTexts,
    /// How texts become sentences.
    pub(crate) model: SentenceModel,
}

/// Larger files are not read: that of all 13,368 articles has 57 MB.
const MAX: u64 = 1 << 30;

/// Reads the expected summaries of all samples.
pub(crate) fn read_expected(path: &Path) -> Result<Vec<String>, ExpectedSummaryError> {
    #[derive(Deserialize)]
    struct Record {
        output: String,
    }
    let bytes = regular_file::read(path, MAX).map_err(|source| ExpectedSummaryError::Read {
        path: path.to_owned(),
        source,
    })?;
    let records: Vec<Record> =
        serde_json::from_slice(&bytes).map_err(|source| ExpectedSummaryError::Form {
            path: path.to_owned(),
            source,
        })?;
    Ok(records.into_iter().map(|record| record.output).collect())
}

impl SummaryJudge {
    /// Computes the figures of `entries`. The first response to a sample counts, as in the reference.
    pub(crate) fn judge(
        &self,
        entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
        token_type: TokenType,
    ) -> Result<SummaryScore, SummaryScoreError> {
        let mut is_answered = vec![false; self.expected.len()];
        let (mut figures, mut characters, mut duplicates) = ([const { Vec::new() }; 4], 0, 0);
        for (number, entry) in entries.into_iter().enumerate() {
            let (entry, number) = (entry?, number + 1);
            let index = entry.qsl_idx;
            let position = usize::try_from(index).unwrap_or(usize::MAX);
            let Some((expected, answered)) = self.expected.get(position).zip(is_answered.get_mut(position))
            else {
                return Err(SummaryScoreError::UnknownSample {
                    entry: number,
                    index,
                    samples: self.expected.len(),
                });
            };
            if std::mem::replace(answered, true) {
                duplicates += 1;
                continue;
            }
            let text = self.lines(&self.text(&entry, token_type, number)?);
            let rouge = Rouge::new(&self.lines(expected), &text);
            let values = [rouge.one, rouge.two, rouge.longest, rouge.longest_of_sentences];
            for (of_all, value) in figures.iter_mut().zip(values) {
                of_all.push(value);
            }
            characters += text.chars().count() as u64;
        }
        if figures[0].is_empty() {
            return Err(SummaryScoreError::NoEntry);
        }
        let missing: Vec<usize> = (0..is_answered.len())
            .filter(|&index| !is_answered[index])
            .collect();
        Ok(SummaryScore {
            summaries: figures[0].len(),
            rouge: figures.map(|of_all| rounded(mean(&of_all) * 100.0)),
            characters,
            duplicates,
            missing,
        })
    }

    /// Returns the text of a response.
    fn text(
        &self,
        entry: &AccuracyEntry,
        token_type: TokenType,
        number: usize,
    ) -> Result<String, SummaryScoreError> {
        let index = entry.qsl_idx;
        let of_length = || SummaryScoreError::Length {
            entry: number,
            index,
            bytes: entry.data.len(),
        };
        let text = match token_type {
            TokenType::Int32 => match entry.data.as_chunks() {
                (tokens, []) => self
                    .tokens
                    .decode(tokens.iter().map(|bytes| i64::from(i32::from_le_bytes(*bytes)))),
                _ => return Err(of_length()),
            },
            TokenType::Int64 => match entry.data.as_chunks() {
                (tokens, []) => self
                    .tokens
                    .decode(tokens.iter().map(|bytes| i64::from_le_bytes(*bytes))),
                _ => return Err(of_length()),
            },
        };
        text.map_err(|token| SummaryScoreError::Token {
            entry: number,
            index,
            token,
        })
    }

    /// Returns a text with a line for each sentence.
    fn lines(&self, text: &str) -> String {
        sentences(text.trim_matches(is_python_space), &self.model).join("\n")
    }
}

/// Rounds to four decimal places as NumPy does.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round_ties_even() / 10_000.0
}
