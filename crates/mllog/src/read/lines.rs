//! Reads numbered lines from a file with any content. The length of a line in memory is limited.

use std::io::{self, BufRead, Read};

/// The error if a line cannot be read. Lines count from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// The input fails.
    #[error("line {line} cannot be read")]
    Io {
        /// The number of the line.
        line: u64,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The line is not UTF-8.
    #[error("line {line} is not text (byte {column} is not UTF-8)")]
    NotText {
        /// The number of the line.
        line: u64,
        /// The first invalid byte, from 1.
        column: usize,
    },
    /// The line is longer than those that LoadGen writes.
    #[error("line {line} is longer than {limit} KiB", limit = limit >> 10)]
    TooLong {
        /// The number of the line.
        line: u64,
        /// The maximum length in bytes.
        limit: u64,
    },
}

/// Iterates over lines without their line ends; `\r\n` counts as one.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    /// The maximum length of a line in bytes.
    limit: u64,
    line: u64,
    failed: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, limit: u64) -> Self {
        Self {
            input,
            limit,
            line: 0,
            failed: false,
        }
    }

    /// Returns the number of the last line.
    pub(super) fn number(&self) -> u64 {
        self.line
    }

    fn read(&mut self) -> Result<Option<String>, LineError> {
        self.line += 1;
        let (line, limit) = (self.line, self.limit);
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(limit).read_until(b'\n', &mut bytes);
        read.map_err(|source| LineError::Io { line, source })?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() as u64 == limit && bytes.last() != Some(&b'\n') {
            return Err(LineError::TooLong { line, limit });
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

    /// Continues after a line that is not UTF-8. Ends after a line that could not be read completely.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let line = self.read();
        self.failed = matches!(line, Err(LineError::Io { .. } | LineError::TooLong { .. }));
        line.transpose()
    }
}
