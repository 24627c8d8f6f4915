//! The delivery's journal, `outbox.journal`: an append-only file of records, each with its length and CRC-32C, that says
//! which streams a run has and how far the coordinator has them. Holds no log bytes: those lie in the run's files.
//!
//! ```text
//! "RGTJ" | u16 LE version | records: u32 LE length | u32 LE CRC-32C of the body | body (postcard)
//! ```
//!
//! **When it is flushed to disk.** `Sealed` before the run's state says `draining`, `failed` or `aborted`; `Whole` before
//! it says `done`. `Committed` never: a lost one costs sending again what the coordinator then calls a duplicate. So a
//! power cut can only lose what costs time.
//!
//! **A torn tail** (a record cut short, of a wrong CRC or not to be understood) is cut off at opening, and every record
//! before it counts. What was behind a damaged record is recovered from elsewhere: seals from the evidence and the files,
//! commitments from the coordinator's next acknowledgement.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use regatta_types::StreamName;
use serde::{Deserialize, Serialize};

const MAGIC: &[u8] = b"RGTJ\x01\x00";
const RECORD_HEADER: usize = 8;
/// No record comes near: a name, a length and a hash.
const MAX_RECORD: usize = 1024;

/// One fact about a run's delivery. Grows at the end only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// The stream will not change any more.
    Sealed {
        /// The stream.
        stream: StreamName,
        /// Its length in bytes.
        length: u64,
        /// Its SHA-256.
        sha256: [u8; 32],
    },
    /// The coordinator has committed every byte before the offset.
    Committed {
        /// The stream.
        stream: StreamName,
        /// The offset.
        offset: u64,
    },
    /// The coordinator has the whole stream, and its hash is equal.
    Whole {
        /// The stream.
        stream: StreamName,
    },
    /// The coordinator has dropped the stream and wants it again from the start.
    Restarted {
        /// The stream.
        stream: StreamName,
    },
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// Where the last whole record ends; a failed append is cut back to here.
    end: u64,
}

impl Journal {
    /// Opens or creates a journal and returns its records. Bytes after the last whole record are cut off.
    ///
    /// # Errors
    /// When the file cannot be opened, read or written. Damaged contents are no error.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<Record>)> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (records, whole) = read_records(&bytes);
        let mut journal = Self {
            file,
            end: whole as u64,
        };
        if whole < bytes.len() {
            tracing::warn!(
                "{}: cut {} bytes of a torn record",
                path.display(),
                bytes.len().saturating_sub(whole)
            );
            journal.cut()?;
        }
        if whole == 0 {
            journal.append_bytes(MAGIC)?;
        }
        Ok((journal, records))
    }

    /// Appends a record. A record that could not be written whole is cut off again.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, record: &Record) -> io::Result<()> {
        let body = postcard_body(record)?;
        let mut bytes = Vec::with_capacity(RECORD_HEADER + body.len());
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        self.append_bytes(&bytes)
    }

    /// Flushes the journal to disk.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self
            .file
            .seek(SeekFrom::Start(self.end))
            .and_then(|_| self.file.write_all(bytes));
        match written {
            Ok(()) => self.end = self.end.saturating_add(bytes.len() as u64),
            Err(_) => self.cut()?,
        }
        written
    }

    fn cut(&self) -> io::Result<()> {
        self.file.set_len(self.end)
    }
}

/// The whole records at the beginning of `bytes`, and where they end.
fn read_records(bytes: &[u8]) -> (Vec<Record>, usize) {
    let mut records = Vec::new();
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
        return (records, 0);
    };
    while let Some((record, behind)) = read_record(rest) {
        records.push(record);
        rest = behind;
    }
    (records, bytes.len().saturating_sub(rest.len()))
}

fn read_record(bytes: &[u8]) -> Option<(Record, &[u8])> {
    let (header, behind) = bytes.split_at_checked(RECORD_HEADER)?;
    let (length, crc) = header.split_at_checked(4)?;
    let length = usize::try_from(u32::from_le_bytes(length.try_into().ok()?)).ok()?;
    let crc = u32::from_le_bytes(crc.try_into().ok()?);
    if length > MAX_RECORD {
        return None;
    }
    let (body, behind) = behind.split_at_checked(length)?;
    if crc32c::crc32c(body) != crc {
        return None;
    }
    Some((postcard::from_bytes(body).ok()?, behind))
}

fn postcard_body(record: &Record) -> io::Result<Vec<u8>> {
    postcard::to_allocvec(record).map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
