//! What can be wrong with a summary, and where.

use regatta_types::UnknownWord;

use super::lines::LineError;

/// A summary that does not read. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// A line cannot be had as text.
    #[error("the summary does not read")]
    Line(#[from] LineError),
    /// Scenario or mode is none of LoadGen's.
    #[error("line {line} of the summary names none of LoadGen's words")]
    Word {
        /// Which line.
        line: u64,
        /// What was expected.
        #[source]
        source: UnknownWord,
    },
    /// The verdict is neither `VALID` nor `INVALID`, or a requirement neither `Yes` nor `NO`.
    #[error("line {line} of the summary says `{found}` where {expected} is expected")]
    Answer {
        /// Which line.
        line: u64,
        /// What stands there.
        found: String,
        /// What could stand there.
        expected: &'static str,
    },
    /// Neither results nor LoadGen's closing line about errors: this is no summary.
    #[error(
        "the file has neither results nor LoadGen's closing lines: it is no summary, or its run was cut off"
    )]
    NothingKnown,
}
