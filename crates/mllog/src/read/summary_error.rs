//! The errors of reading a summary, with their positions.

use regatta_types::UnknownWord;

use super::lines::LineError;

/// The error if a summary cannot be read. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// A line cannot be read as text.
    #[error("the summary cannot be parsed")]
    Line(#[from] LineError),
    /// The file is larger than a summary.
    #[error("the summary is larger than {} MiB", limit >> 20)]
    TooLarge {
        /// The maximum size in bytes.
        limit: u64,
    },
    /// The scenario or mode is not one of LoadGen's.
    #[error("line {line} of the summary is not a line that LoadGen writes")]
    Word {
        /// The number of the line.
        line: u64,
        /// The unknown word and the expected ones.
        #[source]
        source: UnknownWord,
    },
    /// The verdict is neither `VALID` nor `INVALID`, or a requirement is neither `Yes` nor `NO`.
    #[error("line {line} of the summary has `{found}`, expected {expected}")]
    Answer {
        /// The number of the line.
        line: u64,
        /// The text in the file.
        found: String,
        /// The expected texts.
        expected: &'static str,
    },
    /// The file has neither results nor LoadGen's closing line about errors, so it is not a summary.
    #[error(
        "the file has neither results nor LoadGen's closing lines: it is not a summary, or its run was cut off"
    )]
    NothingKnown,
}
