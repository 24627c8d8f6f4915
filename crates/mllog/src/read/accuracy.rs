//! `mlperf_log_accuracy.json`, an entry at a time: the scanner with each response collected.
//!
//! The file is a JSON array and can have gigabytes (segmentation volumes), so only the entry in hand is in memory.
//! Labels and metrics are not this file's business: it gives the response bytes as LoadGen got them.

use std::io::Read;

use super::{
    accuracy_error::AccuracyLogError,
    scan::{AccuracyScanner, Field},
};

/// One logged response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccuracyEntry {
    /// The sample's number in order of issue.
    pub seq_id: u64,
    /// The sample's index in the query sample library.
    pub qsl_idx: u64,
    /// The response, as the SUT gave it.
    pub data: Vec<u8>,
    /// The first token's bytes, where the benchmark reports first tokens (LoadGen 4.0 and later).
    pub token_data: Option<Vec<u8>>,
    /// Output tokens, where the benchmark counts them.
    pub token_count: Option<i64>,
}

/// Iterates over the entries of an accuracy log. After an error it ends.
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
}

impl<R: Read> AccuracyReader<R> {
    /// Reads from `input`, which need not be buffered.
    pub fn new(input: R) -> Self {
        Self {
            scanner: AccuracyScanner::new(input),
        }
    }

    /// The number of the entry that was read last, from 1; 0 before the first.
    #[must_use]
    pub fn entry_number(&self) -> u64 {
        self.scanner.entry_number()
    }

    /// Bytes read so far, for showing progress.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.scanner.bytes_read()
    }

    fn read(&mut self) -> Result<Option<AccuracyEntry>, AccuracyLogError> {
        let (mut data, mut token) = (Vec::new(), Vec::new());
        let scanned = self.scanner.next_fields(|field, digits| match field {
            Field::Data => decode(digits, &mut data),
            Field::TokenData => decode(digits, &mut token),
        })?;
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
        self.read().transpose()
    }
}

/// Adds the bytes that pairs of hexadecimal digits stand for.
fn decode(digits: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend(
        digits
            .chunks_exact(2)
            .map(|pair| value(pair[0]) << 4 | value(pair[1])),
    );
}

/// The value of a digit, of either case.
const fn value(digit: u8) -> u8 {
    // In ASCII letters lie 9 above their value's last four bits, and bit 6 tells them from digits.
    (digit & 0x0f) + 9 * (digit >> 6)
}
