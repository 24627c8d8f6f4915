//! The errors of reading an accuracy log, with their positions.

use std::io;

use super::json_fault::JsonFault;

/// The error if an accuracy log cannot be read. Lines and entries count from 1, offsets from 0.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AccuracyLogError {
    /// The file is empty; LoadGen writes at least `[` and `]`.
    #[error("the accuracy log is empty: LoadGen did not get as far as opening it")]
    Empty,
    /// The file does not begin with `[`.
    #[error("the accuracy log is not a JSON array (byte {offset}, line {line})")]
    NotAnArray {
        /// The offset of the other byte.
        offset: u64,
        /// Its line.
        line: u64,
    },
    /// An entry is not an object of `seq_id`, `qsl_idx` and hexadecimal `data`.
    #[error("entry {entry} of the accuracy log cannot be parsed (byte {offset}, line {line})")]
    Entry {
        /// The number of the entry.
        entry: u64,
        /// The offset at which reading stopped.
        offset: u64,
        /// Its line.
        line: u64,
        /// The reason.
        #[source]
        source: JsonFault,
    },
    /// A response is longer than any of the benchmark.
    #[error(
        "entry {entry} of the accuracy log has a response of {bytes} bytes (byte {offset}): the maximum is {limit} bytes"
    )]
    TooLong {
        /// The number of the entry.
        entry: u64,
        /// The offset of the entry.
        offset: u64,
        /// The length of the response.
        bytes: u64,
        /// The maximum length.
        limit: u64,
    },
    /// The byte after an entry is neither `,` nor `]`.
    #[error("after entry {entry} of the accuracy log is neither `,` nor `]` (byte {offset}, line {line})")]
    Separator {
        /// The number of the entry before it.
        entry: u64,
        /// The offset of the byte.
        offset: u64,
        /// Its line.
        line: u64,
    },
    /// The file ends before its `]`: the run was killed, or the copy is incomplete.
    #[error("the accuracy log ends too early, within or after entry {entry} (byte {offset}, line {line})")]
    EndsEarly {
        /// The number of the last entry that began; 0 if there was none.
        entry: u64,
        /// The length of the file.
        offset: u64,
        /// Its last line.
        line: u64,
    },
    /// The official truncation removed the middle of the file, so it can no longer be parsed.
    #[error(
        "the accuracy log was truncated for submission (near byte {offset}): the complete log is needed here"
    )]
    Truncated {
        /// An offset near the cut.
        offset: u64,
    },
    /// The file continues after the closing `]`.
    #[error("the accuracy log continues after its end (byte {offset}, line {line})")]
    Trailing {
        /// The offset of the additional byte.
        offset: u64,
        /// Its line.
        line: u64,
    },
    /// Reading the file fails.
    #[error("the accuracy log cannot be read after byte {offset}")]
    Io {
        /// The number of bytes that were read.
        offset: u64,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}
