//! Scans `mlperf_log_accuracy.json` at the speed of the disk, for callers that need not store the responses.
//!
//! It checks JSON's grammar; a test compares it with a JSON library. A response's digits are passed on piece by piece, so an
//! entry of any size needs one buffer. Keys with escapes are not unescaped, because LoadGen writes none.

mod entry;
mod fault;

use std::io::{self, Read};

use super::{
    accuracy_error::AccuracyLogError, json_fault::JsonFault, plain_entry::PlainEntry, window::Window,
};
use fault::EntryFault;

/// An entry whose data was passed on during the scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScannedEntry {
    /// The sample's sequence number in order of issue.
    pub seq_id: u64,
    /// The sample's index in the query sample library.
    pub qsl_idx: u64,
    /// The response's length in bytes: half the number of digits.
    pub bytes: u64,
    /// The first token's length in bytes, if the benchmark reports first tokens.
    pub token_bytes: Option<u64>,
    /// The number of output tokens, if the benchmark counts them.
    pub token_count: Option<i64>,
    /// The offset of the entry's `{` in the file.
    pub offset: u64,
    /// The number of bytes from `{` to `}`.
    pub length: u64,
}

/// The field to which the digits belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// The field `data`.
    Data,
    /// The field `token_data`.
    TokenData,
}

/// Scans an accuracy log. It returns no more entries after an error or after the end.
///
/// ```
/// let log = b"[\n{ \"seq_id\" : 0, \"qsl_idx\" : 3, \"data\" : \"07000000\" }\n]\n";
/// let mut scanner = regatta_mllog::read::AccuracyScanner::new(&log[..]);
/// let mut digits = Vec::new();
/// let entry = scanner.next_entry(|piece| digits.extend_from_slice(piece)).unwrap().unwrap();
/// assert_eq!((entry.qsl_idx, entry.bytes, &digits[..]), (3, 4, &b"07000000"[..]));
/// assert!(scanner.next_entry(|_| ()).unwrap().is_none());
/// ```
#[derive(Debug)]
pub struct AccuracyScanner<R> {
    input: Window<R>,
    position: ScanPosition,
    entry: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanPosition {
    Start,
    First,
    Between,
    End,
}

impl<R: Read> AccuracyScanner<R> {
    /// Creates a scanner of `input`, which need not be buffered.
    pub fn new(input: R) -> Self {
        Self {
            input: Window::new(input),
            position: ScanPosition::Start,
            entry: 0,
        }
    }

    /// Returns the number of the last entry, from 1; 0 before the first.
    #[must_use]
    pub fn entry_number(&self) -> u64 {
        self.entry
    }

    /// Returns the number of bytes scanned so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.input.offset()
    }

    /// Scans the next entry. `data` receives the response's valid hexadecimal digits in pieces of even length.
    ///
    /// If an entry is faulty, `data` has already received pieces of it when the error is returned.
    ///
    /// # Errors
    /// See [`AccuracyLogError`].
    pub fn next_entry(
        &mut self,
        mut data: impl FnMut(&[u8]),
    ) -> Result<Option<ScannedEntry>, AccuracyLogError> {
        self.next_fields(|field, digits| {
            if field == Field::Data {
                data(digits);
            }
        })
    }

    /// Scans the next entry like [`next_entry`](Self::next_entry), and also passes on the digits of the first token.
    pub(super) fn next_fields(
        &mut self,
        digits: impl FnMut(Field, &[u8]),
    ) -> Result<Option<ScannedEntry>, AccuracyLogError> {
        let result = self.advance(digits);
        if result.is_err() {
            self.position = ScanPosition::End;
        }
        result
    }

    fn advance(
        &mut self,
        digits: impl FnMut(Field, &[u8]),
    ) -> Result<Option<ScannedEntry>, AccuracyLogError> {
        loop {
            if self.position == ScanPosition::End {
                return Ok(None);
            }
            let byte = self.past_space().map_err(|source| self.io(source))?;
            match (self.position, byte) {
                (ScanPosition::End, _) => return Ok(None),
                (ScanPosition::Start, Some(b'[')) => {
                    self.input.pass(1);
                    self.position = ScanPosition::First;
                }
                (ScanPosition::Start, None) => return Err(AccuracyLogError::Empty),
                (ScanPosition::Start, Some(_)) => {
                    let (offset, line) = (self.input.offset(), self.input.line());
                    return Err(AccuracyLogError::NotAnArray { offset, line });
                }
                (ScanPosition::First | ScanPosition::Between, Some(b']')) => return self.finish(),
                (ScanPosition::First | ScanPosition::Between, None) => return Err(self.ends_early()),
                (ScanPosition::First, Some(_)) => return self.take_entry(digits),
                (ScanPosition::Between, Some(b',')) => {
                    self.input.pass(1);
                    return self.take_entry(digits);
                }
                (ScanPosition::Between, Some(_)) => {
                    let (entry, offset, line) = (self.entry, self.input.offset(), self.input.line());
                    return Err(self.cut_or_io().unwrap_or(AccuracyLogError::Separator {
                        entry,
                        offset,
                        line,
                    }));
                }
            }
        }
    }

    fn finish(&mut self) -> Result<Option<ScannedEntry>, AccuracyLogError> {
        self.input.pass(1);
        self.position = ScanPosition::End;
        match self.past_space().map_err(|source| self.io(source))? {
            None => Ok(None),
            Some(_) => Err(AccuracyLogError::Trailing {
                offset: self.input.offset(),
                line: self.input.line(),
            }),
        }
    }

    fn take_entry(
        &mut self,
        mut digits: impl FnMut(Field, &[u8]),
    ) -> Result<Option<ScannedEntry>, AccuracyLogError> {
        self.entry += 1;
        self.position = ScanPosition::Between;
        if let Some(entry) = self.plain(&mut digits)? {
            return Ok(Some(entry));
        }
        self.object(digits).map(Some).map_err(|fault| match fault {
            EntryFault::Io(source) => self.io(source),
            EntryFault::Ends => self.ends_early(),
            EntryFault::Wrong(message) => {
                let (entry, offset, line) = (self.entry, self.input.offset(), self.input.line());
                self.cut_or_io().unwrap_or(AccuracyLogError::Entry {
                    entry,
                    offset,
                    line,
                    source: JsonFault::from_message(message),
                })
            }
        })
    }

    /// Scans an entry in LoadGen's own form if it is completely in the buffer. Otherwise consumes nothing.
    #[inline]
    fn plain(
        &mut self,
        digits: &mut impl FnMut(Field, &[u8]),
    ) -> Result<Option<ScannedEntry>, AccuracyLogError> {
        self.past_space().map_err(|source| self.io(source))?;
        if self.input.at_hand().len() < PlainEntry::MAX {
            // If the input fails, the general parser meets the error again at the byte that it needs.
            let _ = self.input.refill();
        }
        let offset = self.input.offset();
        let Some(plain) = PlainEntry::at_start(self.input.at_hand()) else {
            return Ok(None);
        };
        digits(Field::Data, plain.digits);
        let entry = ScannedEntry {
            seq_id: plain.seq_id,
            qsl_idx: plain.qsl_idx,
            bytes: plain.digits.len() as u64 / 2,
            token_bytes: None,
            token_count: None,
            offset,
            length: plain.length as u64,
        };
        let length = plain.length;
        self.input.pass(length);
        Ok(Some(entry))
    }

    #[inline]
    fn past_space(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.input.peek()? {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.input.pass(1),
                other => return Ok(other),
            }
        }
    }

    /// Returns the official truncation's cut or an error of the input, if one of them explains the failed scan.
    fn cut_or_io(&mut self) -> Option<AccuracyLogError> {
        let offset = self.input.offset();
        match self.input.at_official_cut() {
            Ok(true) => Some(AccuracyLogError::Truncated { offset }),
            Ok(false) => None,
            Err(source) => Some(self.io(source)),
        }
    }

    fn io(&self, source: io::Error) -> AccuracyLogError {
        AccuracyLogError::Io {
            offset: self.input.offset(),
            source,
        }
    }

    fn ends_early(&self) -> AccuracyLogError {
        AccuracyLogError::EndsEarly {
            entry: self.entry,
            offset: self.input.offset(),
            line: self.input.line(),
        }
    }
}
