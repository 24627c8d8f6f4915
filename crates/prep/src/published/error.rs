//! The errors of published files.

use std::{io, path::PathBuf};

use regatta_datasets::published_hash::OtherFileError;
use regatta_tokenizer::{NotTokens, TokenizerError};

/// The error for a published file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishedError {
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
    #[error("{path} is not the dataset's file", path = path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: RecordError,
    },
    /// The file has too few or too many records.
    #[error("{path} has {found} records, but benchmark {benchmark} has {expected}; hint: `regatta data show {benchmark}` shows the right file", path = path.display())]
    Records {
        /// The file.
        path: PathBuf,
        /// The number of records.
        found: usize,
        /// The number in the benchmark's file.
        expected: usize,
        /// The benchmark's name.
        benchmark: String,
    },
    /// The tokenizer that makes prompts cannot be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The file is not the published one.
    #[error(transparent)]
    OtherFile(#[from] OtherFileError),
}

/// Why the tokens of a caption may not be those of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CaptionFault {
    /// A character that the reference may replace, or treat as a special token.
    #[error("the character {0:?}, for which the reference may use other tokens")]
    Character(char),
    /// A special token.
    #[error("a special token")]
    SpecialToken,
    /// An entity of HTML, which the reference replaces.
    #[error("an entity of HTML")]
    Entity,
    /// A quote at its beginning that is not closed at its end.
    #[error("an unclosed quote, or text after its closing quote")]
    Quotes,
}

/// What is wrong with a file of records.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file is not a JSON array of objects.
    #[error("it is not a JSON array of objects")]
    Json(#[from] serde_json::Error),
    /// A field is missing in a record.
    #[error("the record {record} has no `{field}`")]
    Field {
        /// The record, from 1.
        record: usize,
        field: String,
    },
    /// A record's prompt is not a list of token ids.
    #[error("`{field}` of record {record} is not a list of token ids")]
    Prompt {
        /// The record, from 1.
        record: usize,
        field: String,
    },
    /// A prompt has no token, or more than the model takes.
    #[error("the prompt of record {record} has {found} tokens, but the model takes 1 to {longest}")]
    PromptLength {
        /// The record, from 1.
        record: usize,
        /// Its number of tokens.
        found: usize,
        /// The most that the model takes.
        longest: usize,
    },
    /// A record does not have a field of the prompt's template as a text.
    #[error("`{field}` of record {record}, which the prompt contains, is missing or is not a text")]
    PromptText {
        /// The record, from 1.
        record: usize,
        field: String,
    },
    /// A prompt has no tokens.
    #[error("the prompt of record {record} cannot become tokens")]
    PromptTokens {
        /// The record, from 1.
        record: usize,
        #[source]
        source: NotTokens,
    },
    /// A caption cannot become tokens.
    #[error("the caption of record {record} has {fault}")]
    Caption {
        /// The record, from 1.
        record: usize,
        /// What it has.
        fault: CaptionFault,
    },
    /// The tokenizer has another number of tokens than the model.
    #[error("the merges make {found} tokens, but `vocabulary` is {expected}")]
    Vocabulary {
        /// The tokens of the tokenizer.
        found: u32,
        /// Those of the model.
        expected: i32,
    },
    /// A line of a tokenizer's merges is not a pair of tokens.
    #[error("line {line} is not a pair of tokens")]
    Merge {
        /// The line, from 1.
        line: usize,
    },
    /// The file is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// A column is missing in the first line.
    #[error("its first line names no column `{0}`")]
    Column(String),
    /// A line has another number of columns than the first.
    #[error("line {line} has {found} columns instead of {expected}")]
    Columns {
        /// The line, from 1.
        line: usize,
        /// Its number of columns.
        found: usize,
        /// The number of columns in the first line.
        expected: usize,
    },
}
