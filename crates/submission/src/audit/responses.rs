//! The responses of a run by sample, in 16 bytes each: the beginning that is compared, and a mark of the whole.
//!
//! Samples are numbered from 0, so they index a table; it is as long as the log could have entries, and the system gives
//! memory only for the part that is touched. Numbers beyond it, which no real log has, go to a map.

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
};

use regatta_mllog::read::AccuracyScanner;

use super::{AuditError, Dtype, element::Element};
use crate::files::{At, open};

/// No entry takes fewer bytes in a log: `{"seq_id":0,"qsl_idx":0,"data":""},`.
const SHORTEST_ENTRY: u64 = 36;
/// Digits of the longest element.
const FIRST_DIGITS: usize = 16;

/// Whether a response has a first element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// It has no bytes.
    Empty,
    /// Its bytes are whole elements.
    Whole,
    /// Its last element is incomplete: NumPy refuses it.
    Ragged,
}

/// A response as far as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Response {
    /// Its first eight bytes, little-endian, zero where it is shorter.
    pub(super) first: u64,
    pub(super) shape: Shape,
    /// Whether it comes from the audit's log.
    pub(super) audited: bool,
    /// A checksum of the digits, and how many there are: different for different digits, but for one case in four
    /// thousand million.
    pub(super) mark: u64,
}

/// The first element, where there is one.
impl Response {
    pub(super) fn element(&self, dtype: Dtype) -> Option<Element> {
        (self.shape == Shape::Whole).then(|| dtype.element(self.first))
    }

    fn pack(self) -> [u64; 2] {
        let shape = match self.shape {
            Shape::Empty => 1,
            Shape::Whole => 2,
            Shape::Ragged => 3,
        };
        [self.first, self.mark << 3 | u64::from(self.audited) << 2 | shape]
    }

    /// `None` for the zeros of an untouched place.
    fn unpack([first, rest]: [u64; 2]) -> Option<Self> {
        let shape = match rest & 3 {
            1 => Shape::Empty,
            2 => Shape::Whole,
            3 => Shape::Ragged,
            _ => return None,
        };
        Some(Self {
            first,
            shape,
            audited: rest & 4 != 0,
            mark: rest >> 3,
        })
    }
}

/// Responses by sample.
#[derive(Debug)]
pub(super) struct Responses {
    table: Vec<[u64; 2]>,
    beyond: HashMap<u64, [u64; 2]>,
}

impl Responses {
    /// For the entries of a log of so many bytes.
    pub(super) fn for_log(bytes: u64) -> Self {
        let length = usize::try_from(bytes / SHORTEST_ENTRY).unwrap_or(0);
        Self {
            table: vec![[0; 2]; length],
            beyond: HashMap::new(),
        }
    }

    pub(super) fn get(&self, qsl_idx: u64) -> Option<Response> {
        let place = usize::try_from(qsl_idx)
            .ok()
            .and_then(|index| self.table.get(index));
        Response::unpack(*place.or_else(|| self.beyond.get(&qsl_idx))?)
    }

    pub(super) fn set(&mut self, qsl_idx: u64, response: Response) {
        let place = usize::try_from(qsl_idx)
            .ok()
            .and_then(|index| self.table.get_mut(index));
        match place {
            Some(place) => *place = response.pack(),
            None => {
                self.beyond.insert(qsl_idx, response.pack());
            }
        }
    }
}

/// An entry of a log as it is compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) seq_id: u64,
    pub(super) qsl_idx: u64,
    /// The response's length.
    pub(super) bytes: u64,
    pub(super) response: Response,
}

/// Gives the entries of an accuracy log one by one.
#[derive(Debug)]
pub(super) struct Answers {
    scanner: AccuracyScanner<File>,
    path: PathBuf,
    dtype: Dtype,
    audited: bool,
    /// The log's length.
    pub(super) log_bytes: u64,
}

impl Answers {
    pub(super) fn open(path: &Path, dtype: Dtype, audited: bool) -> Result<Self, AuditError> {
        let file = open(path).at("open", path)?;
        let log_bytes = file.metadata().at("look at", path)?.len();
        Ok(Self {
            scanner: AccuracyScanner::new(file),
            path: path.to_owned(),
            dtype,
            audited,
            log_bytes,
        })
    }

    /// Entries given so far.
    pub(super) fn count(&self) -> u64 {
        self.scanner.entry_number()
    }

    pub(super) fn next(&mut self) -> Result<Option<Answer>, AuditError> {
        let (mut first, mut digits) = (0_u64, 0_usize);
        let mut checksum = 0;
        let entry = self.scanner.next_entry(|piece| {
            if digits < FIRST_DIGITS {
                for pair in piece.chunks_exact(2).take((FIRST_DIGITS - digits) / 2) {
                    if let [high, low] = *pair {
                        first |= u64::from(value(high) << 4 | value(low)) << (4 * digits);
                    }
                    digits += 2;
                }
            }
            checksum = crc32c::crc32c_append(checksum, piece);
        });
        let entry = entry.map_err(|source| AuditError::AccuracyLog {
            path: self.path.clone(),
            source,
        })?;
        Ok(entry.map(|entry| Answer {
            seq_id: entry.seq_id,
            qsl_idx: entry.qsl_idx,
            bytes: entry.bytes,
            response: Response {
                first,
                shape: match entry.bytes {
                    0 => Shape::Empty,
                    bytes if bytes.is_multiple_of(self.dtype.size()) => Shape::Whole,
                    _ => Shape::Ragged,
                },
                audited: self.audited,
                mark: u64::from(checksum) << 29 | (entry.bytes & ((1 << 29) - 1)),
            },
        }))
    }
}

/// The value of a digit that the scanner has checked: letters have bit 6, and their low bits count from 1.
fn value(digit: u8) -> u8 {
    (digit & 15) + 9 * (digit >> 6)
}
