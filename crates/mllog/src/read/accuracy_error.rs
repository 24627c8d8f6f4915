//! What can be wrong with an accuracy log, and where.

use std::io;

use super::json_fault::JsonFault;

/// An accuracy log that does not read. Lines and entries count from 1, offsets from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccuracyLogError {
    /// The file is empty; LoadGen writes at least `[` and `]`.
    #[error("the accuracy log is empty: LoadGen did not get as far as opening it")]
    Empty,
    /// The file does not begin with `[`.
    #[error("the accuracy log is no JSON array (byte {offset}, line {line})")]
    NotAnArray {
        /// Where something other than `[` stands.
        offset: u64,
        /// Its line.
        line: u64,
    },
    /// An entry that is no object of `seq_id`, `qsl_idx` and hexadecimal `data`.
    #[error("entry {entry} of the accuracy log does not read (byte {offset}, line {line})")]
    Entry {
        /// Which entry.
        entry: u64,
        /// Where reading stopped.
        offset: u64,
        /// Its line.
        line: u64,
        /// What is wrong with it.
        #[source]
        source: JsonFault,
    },
    /// Something other than `,` or `]` after an entry.
    #[error(
        "after entry {entry} of the accuracy log stands neither `,` nor `]` (byte {offset}, line {line})"
    )]
    Separator {
        /// The entry before.
        entry: u64,
        /// Where.
        offset: u64,
        /// Its line.
        line: u64,
    },
    /// The file ends before its `]`: the run was killed, or the copy is incomplete.
    #[error("the accuracy log ends too early, within or after entry {entry} (byte {offset}, line {line})")]
    EndsEarly {
        /// The last entry that was begun; 0 when there was none.
        entry: u64,
        /// The file's length.
        offset: u64,
        /// Its last line.
        line: u64,
    },
    /// The official truncation has taken out the middle: what remains is for the eye.
    #[error(
        "the accuracy log was truncated for submission (near byte {offset}): the whole log is needed here"
    )]
    Truncated {
        /// Near the cut.
        offset: u64,
    },
    /// More after the closing `]`.
    #[error("the accuracy log goes on after its end (byte {offset}, line {line})")]
    Trailing {
        /// Where.
        offset: u64,
        /// Its line.
        line: u64,
    },
    /// The file cannot be read on.
    #[error("the accuracy log cannot be read on after byte {offset}")]
    Io {
        /// Bytes that were read.
        offset: u64,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}
