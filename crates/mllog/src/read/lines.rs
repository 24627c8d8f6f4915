//! Numbered lines out of a file that may hold anything: no line is taken whole before its length is known to be sane.

use std::io::{self, BufRead, Read};

/// Longer than any line LoadGen writes: a loaded set of the largest dataset (200,000 indices) has under 2 MiB.
const LONGEST_LINE: u64 = 64 << 20;

/// A line that cannot be had. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The source fails.
    #[error("line {line} cannot be read")]
    Io {
        /// Which line.
        line: u64,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// Bytes that are no UTF-8.
    #[error("line {line} is not text (byte {column} is no UTF-8)")]
    NotText {
        /// Which line.
        line: u64,
        /// The first wrong byte, from 1.
        column: usize,
    },
    /// A line of more than 64 MiB.
    #[error("line {line} is longer than 64 MiB")]
    TooLong {
        /// Which line.
        line: u64,
    },
}

/// Gives lines without their line ends; `\r\n` counts as one.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    line: u64,
    failed: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            line: 0,
            failed: false,
        }
    }

    /// The number of the line given last.
    pub(super) fn number(&self) -> u64 {
        self.line
    }

    fn read(&mut self) -> Result<Option<String>, LineError> {
        self.line += 1;
        let line = self.line;
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(LONGEST_LINE).read_until(b'\n', &mut bytes);
        read.map_err(|source| LineError::Io { line, source })?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() as u64 == LONGEST_LINE && bytes.last() != Some(&b'\n') {
            return Err(LineError::TooLong { line });
        }
        for end in [b'\n', b'\r'] {
            if bytes.last() == Some(&end) {
                bytes.pop();
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(LineError::NotText {
                line,
                column: error.utf8_error().valid_up_to() + 1,
            }),
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<String, LineError>;

    /// Goes on after a line that is no text; ends after one that could not be read to its end.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let line = self.read();
        self.failed = matches!(line, Err(LineError::Io { .. } | LineError::TooLong { .. }));
        line.transpose()
    }
}
