//! Reads `mlperf_log_accuracy.json` entry by entry: the scanner, with each response collected.
//!
//! The file is a JSON array and can have gigabytes (segmentation volumes), so only the current entry is in memory. The module
//! returns the response bytes as LoadGen received them. It does not interpret labels or metrics.

use std::io::Read;

use super::{
    accuracy_error::AccuracyLogError,
    scan::{AccuracyScanner, Field},
};

/// The longest response that is kept unless [`AccuracyReader::with_max_response`] says otherwise, in bytes: one segmented volume.
pub const MAX_RESPONSE: u64 = 256 << 20;

/// One logged response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccuracyEntry {
    /// The sample's sequence number in order of issue.
    pub seq_id: u64,
    /// The sample's index in the query sample library.
    pub qsl_idx: u64,
    /// The response, as the SUT returned it.
    pub data: Vec<u8>,
    /// The first token's bytes, if the benchmark reports first tokens (LoadGen 4.0 and later).
    pub token_data: Option<Vec<u8>>,
    /// The number of output tokens, if the benchmark counts them.
    pub token_count: Option<i64>,
}

/// Iterates over the entries of an accuracy log. It ends after an error.
///
/// ```
/// let log = b"[\n{ \"seq_id\" : 0, \"qsl_idx\" : 3, \"data\" : \"07000000\" }\n]\n";
/// let mut entries = regatta_mllog::read::AccuracyReader::new(&log[..]);
/// assert_eq!(entries.next().unwrap().unwrap().data, [7, 0, 0, 0]);
/// assert!(entries.next().is_none());
/// ```
#[derive(Debug)]
pub struct AccuracyReader<R> {
    scanner: AccuracyScanner<R>,
    max_response: u64,
    /// Whether an entry was too long, which the scanner does not notice.
    has_failed: bool,
}

impl<R: Read> AccuracyReader<R> {
    /// Creates a reader of `input`, which need not be buffered.
    pub fn new(input: R) -> Self {
        Self {
            scanner: AccuracyScanner::new(input),
            max_response: MAX_RESPONSE,
            has_failed: false,
        }
    }

    /// Sets the longest response that is kept, in bytes. A longer one ends the reader with [`AccuracyLogError::TooLong`].
    #[must_use]
    pub const fn with_max_response(mut self, bytes: u64) -> Self {
        self.max_response = bytes;
        self
    }

    /// Returns the number of the last entry, from 1; 0 before the first.
    #[must_use]
    pub fn entry_number(&self) -> u64 {
        self.scanner.entry_number()
    }

    /// Returns the number of bytes read so far, to show progress.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.scanner.bytes_read()
    }

    fn read(&mut self) -> Result<Option<AccuracyEntry>, AccuracyLogError> {
        let (mut data, mut token) = (Vec::new(), Vec::new());
        let limit = self.max_response;
        let scanned = self.scanner.next_fields(|field, digits| {
            let bytes = match field {
                Field::Data => &mut data,
                Field::TokenData => &mut token,
            };
            // The rest of a longer response is only scanned.
            if bytes.len() as u64 <= limit {
                decode(digits, bytes);
            }
        })?;
        if let Some(entry) = scanned.filter(|entry| entry.bytes.max(entry.token_bytes.unwrap_or(0)) > limit) {
            self.has_failed = true;
            return Err(AccuracyLogError::TooLong {
                entry: self.entry_number(),
                offset: entry.offset,
                bytes: entry.bytes.max(entry.token_bytes.unwrap_or(0)),
                limit,
            });
        }
        Ok(scanned.map(|entry| AccuracyEntry {
            seq_id: entry.seq_id,
            qsl_idx: entry.qsl_idx,
            data,
            token_data: entry.token_bytes.map(|_| token),
            token_count: entry.token_count,
        }))
    }
}

impl<R: Read> Iterator for AccuracyReader<R> {
    type Item = Result<AccuracyEntry, AccuracyLogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        self.read().transpose()
    }
}

/// Appends the bytes of pairs of hexadecimal digits.
fn decode(digits: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend(
        digits
            .chunks_exact(2)
            .map(|pair| value(pair[0]) << 4 | value(pair[1])),
    );
}

/// Returns the value of a digit in upper or lower case.
const fn value(digit: u8) -> u8 {
    // In ASCII, a letter's last four bits are its value minus 9, and bit 6 distinguishes letters from digits.
    (digit & 0x0f) + 9 * (digit >> 6)
}
