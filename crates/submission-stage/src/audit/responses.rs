//! The responses of a run by sample: the first element and a checksum of the complete response.
//!
//! A response takes 8 bytes, or 12 if elements have 8. Sample indices start at 0 and index a table. The table is as long as the
//! log could have entries. The operating system only allocates the pages that are used. Larger indices, which real logs do not
//! have, go to a map.

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_mllog::read::AccuracyScanner;

use super::{AuditError, Dtype, element::Element};
use regatta_submission_check::files::At;

/// The size of the shortest entry in a log, in bytes: `{"seq_id":0,"qsl_idx":0,"data":""},`.
const MIN_ENTRY: u64 = 36;
/// The number of bits of a stored checksum.
const MARK_BITS: u32 = 29;

/// The first element of a response, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The response has no bytes.
    Empty,
    /// The response has whole elements only.
    Whole,
    /// The last element is incomplete, which NumPy refuses.
    Ragged,
}

/// The stored part of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Response {
    /// The bytes of the first element, at least four, in little-endian order and padded with zeros.
    first: u64,
    pub(super) shape: Shape,
    /// Whether the response comes from the audit's log.
    pub(super) audited: bool,
    /// A checksum. Two different responses have the same one in one of five hundred million cases.
    mark: u32,
}

impl Response {
    /// Returns the first element, if there is one.
    pub(super) fn element(&self, dtype: Dtype) -> Option<Element> {
        (self.shape == Shape::Whole).then(|| dtype.element(self.first))
    }

    /// Packs the checksum, the flags and the first four bytes. The result is never zero.
    fn pack(self) -> u64 {
        let shape = match self.shape {
            Shape::Empty => 1,
            Shape::Whole => 2,
            Shape::Ragged => 3,
        };
        let flags = u64::from(self.mark) << 3 | u64::from(self.audited) << 2 | shape;
        flags << 32 | self.first & u64::from(u32::MAX)
    }

    /// Unpacks a response, or returns `None` for the zeros of an unused entry. `rest` has the bytes after the first four.
    fn unpack(packed: u64, rest: u32) -> Option<Self> {
        let flags = (packed >> 32) as u32;
        let shape = match flags & 3 {
            1 => Shape::Empty,
            2 => Shape::Whole,
            3 => Shape::Ragged,
            _ => return None,
        };
        Some(Self {
            first: packed & u64::from(u32::MAX) | u64::from(rest) << 32,
            shape,
            audited: flags & 4 != 0,
            mark: flags >> 3,
        })
    }
}

/// Responses by sample.
#[derive(Debug)]
pub(super) struct Responses {
    table: Vec<u64>,
    /// The bytes of elements after the first four; empty if elements have at most four bytes.
    rest: Vec<u32>,
    beyond: HashMap<u64, (u64, u32)>,
}

impl Responses {
    /// Creates a table for the entries of a log of `bytes` bytes.
    pub(super) fn for_log(bytes: u64, dtype: Dtype) -> Self {
        let length = usize::try_from(bytes / MIN_ENTRY).unwrap_or(0);
        Self {
            table: vec![0; length],
            rest: vec![0; if dtype.size() > 4 { length } else { 0 }],
            beyond: HashMap::new(),
        }
    }

    pub(super) fn get(&self, qsl_idx: u64) -> Option<Response> {
        let index = usize::try_from(qsl_idx).ok();
        match index.and_then(|index| Some((index, self.table.get(index)?))) {
            Some((index, &packed)) => {
                Response::unpack(packed, self.rest.get(index).copied().unwrap_or_default())
            }
            None => {
                let &(packed, rest) = self.beyond.get(&qsl_idx)?;
                Response::unpack(packed, rest)
            }
        }
    }

    pub(super) fn set(&mut self, qsl_idx: u64, response: Response) {
        let (packed, rest) = (response.pack(), (response.first >> 32) as u32);
        let index = usize::try_from(qsl_idx).ok();
        match index.and_then(|index| Some((index, self.table.get_mut(index)?))) {
            Some((index, place)) => {
                *place = packed;
                if let Some(place) = self.rest.get_mut(index) {
                    *place = rest;
                }
            }
            None => {
                self.beyond.insert(qsl_idx, (packed, rest));
            }
        }
    }
}

/// An entry of a log, as it is compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) seq_id: u64,
    pub(super) qsl_idx: u64,
    /// The length of the response in bytes.
    pub(super) bytes: u64,
    pub(super) response: Response,
    /// A checksum of the hexadecimal digits, and the length of the response.
    ///
    /// Two different responses have the same one in one of four thousand million cases.
    pub(super) mark: u64,
}

/// Reads the entries of an accuracy log one by one.
#[derive(Debug)]
pub(super) struct LoggedAnswers {
    scanner: AccuracyScanner<File>,
    path: PathBuf,
    dtype: Dtype,
    audited: bool,
    /// The length of the log in bytes.
    pub(super) log_bytes: u64,
}

impl LoggedAnswers {
    pub(super) fn open(path: &Path, dtype: Dtype, audited: bool) -> Result<Self, AuditError> {
        let file = regular_file::open(path).at("open", path)?;
        let log_bytes = file.metadata().at("look at", path)?.len();
        Ok(Self {
            scanner: AccuracyScanner::new(file),
            path: path.to_owned(),
            dtype,
            audited,
            log_bytes,
        })
    }

    /// Returns the number of entries read so far.
    pub(super) fn count(&self) -> u64 {
        self.scanner.entry_number()
    }

    pub(super) fn next(&mut self) -> Result<Option<Answer>, AuditError> {
        let (mut first, mut digits) = (0_u64, 0_usize);
        let first_digits = 2 * self.dtype.size().max(4) as usize;
        let mut checksum = 0;
        let entry = self.scanner.next_entry(|piece| {
            if digits < first_digits {
                for pair in piece.chunks_exact(2).take((first_digits - digits) / 2) {
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
                mark: short_mark(checksum, entry.bytes),
            },
            mark: u64::from(checksum) << 32 | (entry.bytes & u64::from(u32::MAX)),
        }))
    }
}

/// Combines a checksum and a length into fewer bits, all of which depend on both.
fn short_mark(checksum: u32, bytes: u64) -> u32 {
    checksum.wrapping_add(bytes as u32).wrapping_mul(0x9E37_79B1) >> (u32::BITS - MARK_BITS)
}

/// Returns the value of a hexadecimal digit that the scanner has checked. Letters have bit 6 set, and their low bits count from
/// 1.
fn value(digit: u8) -> u8 {
    (digit & 15) + 9 * (digit >> 6)
}
