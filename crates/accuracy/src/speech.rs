//! The word error rate of transcripts, as the reference's `accuracy_eval.py` of RNN-T and of Whisper compute it: the fewest words to insert, delete
//! or change, over the words of all transcripts. The log is read entry by entry.

use std::{borrow::Cow, fmt};

use regatta_mllog::read::{AccuracyEntry, AccuracyLogError};
use regatta_types::{accuracy_line::word_error_line, benchmark::ENGLISH_SYMBOLS};

use super::english::EnglishNormalizer;

/// The symbols of RNN-T, by their index. The decoder's blank is behind them and never in a response.
const SYMBOLS: &[u8] = b" abcdefghijklmnopqrstuvwxyz'";

/// How texts are compared.
pub(crate) enum TextRules {
    Words,
    /// After normalisation, and with words that are joined or separated as equals.
    English(Box<EnglishNormalizer>),
}

impl TextRules {
    const fn symbols(&self) -> &'static [u8] {
        match self {
            Self::Words => SYMBOLS,
            Self::English(_) => ENGLISH_SYMBOLS,
        }
    }

    /// Returns the words of an expected and of a found text, and how many words are expected.
    fn words<'t>(&self, expected: &'t str, found: &'t str) -> ([Vec<Cow<'t, str>>; 2], usize) {
        match self {
            Self::Words => {
                let [expected, found] =
                    [expected, found].map(|text| text.split_whitespace().map(Cow::Borrowed).collect());
                let count = Vec::len(&expected);
                ([expected, found], count)
            }
            Self::English(normalizer) => {
                let [expected, found] = [expected, found].map(|text| normalizer.words(text));
                (aligned(&expected, &found), expected.len())
            }
        }
    }
}

/// The most words that are joined to one.
const MAX_JOINED: usize = 3;

/// Goes through both texts together, and joins up to three words of one that are one word of the other.
fn aligned(expected: &[String], found: &[String]) -> [Vec<Cow<'static, str>>; 2] {
    let mut results = [Vec::new(), Vec::new()];
    let (mut place, mut other) = (0, 0);
    while place < expected.len() && other < found.len() {
        let joined = |words: &[String], from: usize, count: usize, word: &str| {
            words
                .get(from..from + count)
                .is_some_and(|words| words.concat() == word)
        };
        let counts = (1..=MAX_JOINED).find_map(|count| {
            let of_expected = joined(expected, place, count, &found[other]).then_some((count, 1));
            of_expected.or_else(|| joined(found, other, count, &expected[place]).then_some((1, count)))
        });
        let (count, other_count) = counts.unwrap_or((1, 1));
        results[0].push(Cow::Owned(expected[place..place + count].concat()));
        results[1].push(Cow::Owned(found[other..other + other_count].concat()));
        (place, other) = (place + count, other + other_count);
    }
    results[0].extend(expected[place..].iter().cloned().map(Cow::Owned));
    results[1].extend(found[other..].iter().cloned().map(Cow::Owned));
    results
}

/// The word error rate of a run. Its `Display` is the official script's line.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeechScore {
    /// The word error rate, as a fraction. It can be larger than 1.
    pub word_error_rate: f64,
    /// The number of samples with a response.
    pub utterances: usize,
    /// The number of further responses to the same samples. The script counts them, and so does the rate.
    pub duplicates: usize,
    /// The indices of the samples without a response, ascending.
    pub missing: Vec<usize>,
}

impl SpeechScore {
    /// Returns 100 % minus the word error rate, in percent, which the official checker reads.
    #[must_use]
    pub fn percent(&self) -> f64 {
        (1.0 - self.word_error_rate) * 100.0
    }
}

impl fmt::Display for SpeechScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&word_error_line(self.word_error_rate))
    }
}

/// The type of a response's symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolType {
    /// One byte, as NVIDIA's harness answers.
    Int8,
    /// Eight bytes, as the reference answers.
    Int64,
}

/// The error when no word error rate can be computed. Entries count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpeechScoreError {
    /// The log cannot be read.
    #[error("the accuracy log cannot be read")]
    Log(#[from] AccuracyLogError),
    /// The log has no entry.
    #[error("the accuracy log has no entry; hint: run in AccuracyOnly or SubmissionRun mode")]
    NoEntry,
    /// An entry names a sample that the dataset does not have.
    #[error(
        "entry {entry} is for sample {index}, but there are {samples} samples; hint: use the transcripts of this dataset"
    )]
    UnknownSample {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        samples: usize,
    },
    /// A response has a part of a symbol.
    #[error(
        "the response in entry {entry} (sample {index}) has {bytes} bytes, which is not a multiple of a symbol's size; hint: --dtype byte or int64"
    )]
    Length {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        /// The bytes of the response.
        bytes: usize,
    },
    /// A response has a symbol that does not exist.
    #[error(
        "the response in entry {entry} (sample {index}) has the symbol {symbol}, but there are {symbols}, from 0; hint: responses have no blank, and --dtype names their type"
    )]
    Symbol {
        /// The entry's number.
        entry: usize,
        /// The sample in the entry.
        index: u64,
        symbol: i64,
        symbols: usize,
    },
}

/// Computes the word error rate of `entries` with the transcripts of all samples.
pub(crate) fn speech(
    entries: impl IntoIterator<Item = Result<AccuracyEntry, AccuracyLogError>>,
    transcripts: &[String],
    symbol_type: SymbolType,
    rules: &TextRules,
) -> Result<SpeechScore, SpeechScoreError> {
    let mut answered = vec![false; transcripts.len()];
    let (mut duplicates, mut errors, mut words) = (0, 0, 0);
    let (mut text, mut row) = (String::new(), Vec::new());
    for (number, entry) in entries.into_iter().enumerate() {
        let (entry, number) = (entry?, number + 1);
        let index = entry.qsl_idx;
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        let Some((transcript, is_answered)) = transcripts.get(position).zip(answered.get_mut(position))
        else {
            return Err(SpeechScoreError::UnknownSample {
                entry: number,
                index,
                samples: transcripts.len(),
            });
        };
        duplicates += usize::from(std::mem::replace(is_answered, true));
        read_symbols(&entry, symbol_type, number, rules.symbols(), &mut text)?;
        let ([expected, found], count) = rules.words(transcript, &text);
        words += count;
        errors += differences(&expected, &found, &mut row);
    }
    if words == 0 {
        return Err(SpeechScoreError::NoEntry);
    }
    let missing: Vec<usize> = (0..answered.len()).filter(|&index| !answered[index]).collect();
    Ok(SpeechScore {
        word_error_rate: errors as f64 / words as f64,
        utterances: answered.len() - missing.len(),
        duplicates,
        missing,
    })
}

/// Replaces `text` with the text of a response.
fn read_symbols(
    entry: &AccuracyEntry,
    symbol_type: SymbolType,
    number: usize,
    symbols: &[u8],
    text: &mut String,
) -> Result<(), SpeechScoreError> {
    let index = entry.qsl_idx;
    text.clear();
    let mut push = |symbol: i64| {
        let found = usize::try_from(symbol).ok().and_then(|at| symbols.get(at));
        let found = found.ok_or(SpeechScoreError::Symbol {
            entry: number,
            index,
            symbol,
            symbols: symbols.len(),
        })?;
        text.push(char::from(*found));
        Ok(())
    };
    match symbol_type {
        SymbolType::Int8 => entry
            .data
            .iter()
            .try_for_each(|&byte| push(i64::from(byte.cast_signed()))),
        SymbolType::Int64 => match entry.data.as_chunks() {
            (symbols, []) => symbols
                .iter()
                .try_for_each(|&bytes| push(i64::from_le_bytes(bytes))),
            _ => Err(SpeechScoreError::Length {
                entry: number,
                index,
                bytes: entry.data.len(),
            }),
        },
    }
}

/// Returns the fewest words to insert, delete or change so that `found` becomes `expected`. `row` is reused memory.
fn differences(expected: &[Cow<'_, str>], found: &[Cow<'_, str>], row: &mut Vec<usize>) -> usize {
    row.clear();
    row.extend(0..=expected.len());
    for word in found {
        let mut diagonal = row[0];
        row[0] += 1;
        for (at, other) in expected.iter().enumerate() {
            let change = diagonal + usize::from(other != word);
            diagonal = row[at + 1];
            row[at + 1] = change.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[expected.len()]
}
