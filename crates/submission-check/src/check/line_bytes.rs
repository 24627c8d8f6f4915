//! Finds bytes in a text log that LoadGen does not write: carriage returns and NUL.

use std::io::Read;

use memchr::{memchr, memchr2};

use super::{
    finding::{Findings, Severity},
    lines::Lines,
    rules,
};

/// The longest part of a line that is read at once, in bytes.
const MAX_PART: usize = 1 << 20;

/// The carriage returns and NUL bytes of a log.
#[derive(Debug, Default)]
pub(crate) struct LineBytes {
    lines: u64,
    /// The number of lines that end with a carriage return and a line feed.
    returned: u64,
    /// The first line with a carriage return that is not at its end.
    return_within: Option<u64>,
    first_returned: Option<u64>,
    first_nul: Option<u64>,
}

impl LineBytes {
    /// Reads all lines of a file, as far as it can be read.
    pub(crate) fn read(input: impl Read) -> Self {
        let mut lines = Lines::new(input, MAX_PART);
        let mut found = Self::default();
        while let Ok(Some(bytes)) = lines.next() {
            found.take(found.lines + 1, bytes);
        }
        found
    }

    /// Adds a line, with its line end.
    pub(crate) fn take(&mut self, line: u64, bytes: &[u8]) {
        self.lines += 1;
        if memchr2(b'\r', 0, bytes).is_none() {
            return;
        }
        let body = match bytes.strip_suffix(b"\r\n") {
            Some(body) => {
                self.returned += 1;
                self.first_returned.get_or_insert(line);
                body
            }
            None => bytes,
        };
        if memchr(b'\r', body).is_some() {
            self.return_within.get_or_insert(line);
        }
        if memchr(0, body).is_some() {
            self.first_nul.get_or_insert(line);
        }
    }

    /// Adds a finding for each kind of byte that the log at `path` should not have.
    pub(crate) fn report(&self, path: &str, findings: &mut Findings) {
        let fix = "put LoadGen's log of the run in its place";
        let mut add =
            |severity, line, text: &str| findings.add(severity, rules::LOG, (path, line), text, fix);
        if self.first_nul.is_some() {
            add(
                Severity::Error,
                self.first_nul,
                "a NUL byte, which LoadGen does not write",
            );
        }
        if self.return_within.is_some() {
            let text = "a carriage return within the line, which LoadGen does not write";
            add(Severity::Error, self.return_within, text);
        }
        if self.returned == self.lines && self.lines > 0 {
            let text = "every line ends with CRLF: the line ends were converted after the run";
            add(Severity::Warning, self.first_returned, text);
        } else if self.returned > 0 {
            let text = format!(
                "{} of {} lines end with CRLF: LoadGen ends all lines alike",
                self.returned, self.lines
            );
            add(Severity::Error, self.first_returned, &text);
        }
    }
}
