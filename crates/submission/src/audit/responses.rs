//! The responses of a run by sample, in 8 bytes each (12 where elements have 8): the first element, and a mark of the whole.
//!
//! Samples are numbered from 0, so they index a table; it is as long as the log could have entries, and the system gives
//! memory only for the part that is touched. Numbers beyond it, which no real log has, go to a map.

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
};

use regatta_fsutil::regular_file;
use regatta_mllog::read::AccuracyScanner;

use super::{AuditError, Dtype, element::Element};
use crate::files::At;

/// No entry takes fewer bytes in a log: `{"seq_id":0,"qsl_idx":0,"data":""},`.
const SHORTEST_ENTRY: u64 = 36;
/// Bits of a kept mark.
const MARK_BITS: u32 = 29;

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
    /// Its first element's bytes, and no fewer than four, little-endian; zero where it is shorter.
    first: u64,
    pub(super) shape: Shape,
    /// Whether it comes from the audit's log.
    pub(super) audited: bool,
    /// Different for responses that differ, but for one case in five hundred million.
    mark: u32,
}

impl Response {
    /// The first element, where there is one.
    pub(super) fn element(&self, dtype: Dtype) -> Option<Element> {
        (self.shape == Shape::Whole).then(|| dtype.element(self.first))
    }

    /// The mark and the flags, and the first four bytes; never zero.
    fn pack(self) -> u64 {
        let shape = match self.shape {
            Shape::Empty => 1,
            Shape::Whole => 2,
            Shape::Ragged => 3,
        };
        let flags = u64::from(self.mark) << 3 | u64::from(self.audited) << 2 | shape;
        flags << 32 | self.first & u64::from(u32::MAX)
    }

    /// `None` for the zeros of an untouched place. `rest` holds the bytes beyond the first four.
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
    /// The bytes of elements beyond their first four; empty where no element has more.
    rest: Vec<u32>,
    beyond: HashMap<u64, (u64, u32)>,
}

impl Responses {
    /// For the entries of a log of so many bytes.
    pub(super) fn for_log(bytes: u64, dtype: Dtype) -> Self {
        let length = usize::try_from(bytes / SHORTEST_ENTRY).unwrap_or(0);
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

/// An entry of a log as it is compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) seq_id: u64,
    pub(super) qsl_idx: u64,
    /// The response's length.
    pub(super) bytes: u64,
    pub(super) response: Response,
    /// A checksum of the digits, and how many there are: different for different digits, but for one case in four
    /// thousand million.
    pub(super) mark: u64,
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

    /// Entries given so far.
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

/// A checksum and a length in fewer bits, all of which count.
fn short_mark(checksum: u32, bytes: u64) -> u32 {
    checksum.wrapping_add(bytes as u32).wrapping_mul(0x9E37_79B1) >> (u32::BITS - MARK_BITS)
}

/// The value of a digit that the scanner has checked: letters have bit 6, and their low bits count from 1.
fn value(digit: u8) -> u8 {
    (digit & 15) + 9 * (digit >> 6)
}
