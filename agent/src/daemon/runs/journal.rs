//! The delivery journal, `outbox.journal`: an append-only file of records, each with length and CRC-32C. It records the
//! run's streams and how much of each the coordinator has. It contains no log bytes; those are in the run's files.
//!
//! ```text
//! "RGTJ" | u16 LE version | records: u32 LE length | u32 LE CRC-32C of the body | body (postcard)
//! ```
//!
//! **Flushes to disk.** `Sealed` is flushed before the run's state becomes `draining`, `failed` or `aborted`. `Complete`
//! is flushed before the state becomes `done`. `Committed` is never flushed: losing one only causes duplicates. So a
//! power cut can only cost time.
//!
//! **Torn tail.** Opening the journal cuts off a record that is incomplete, has a wrong CRC or does not decode, with everything
//! after it. Earlier records remain valid. The lost records are recovered elsewhere: seals from the evidence and the files,
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
/// Upper limit in bytes. A record is much smaller: a name, a length and a hash.
const MAX_RECORD: usize = 1024;
/// The largest part of a journal that is read, in bytes. It has a record of some 60 bytes for every 4 MiB of logs, and a few for each
/// acknowledged request to send again.
const MAX_JOURNAL: u64 = 16 << 20;

/// A record of the journal. New variants are only appended, because postcard encodes their position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// The stream is final.
    Sealed {
        stream: StreamName,
        /// Its length in bytes.
        length: u64,
        /// Its SHA-256.
        sha256: [u8; 32],
    },
    /// The coordinator has committed all bytes before the offset.
    Committed {
        stream: StreamName,
        /// The offset in bytes.
        offset: u64,
    },
    /// The coordinator has the complete stream with an equal hash.
    Complete { stream: StreamName },
    /// The coordinator has dropped the stream and needs it again from the start.
    Restarted { stream: StreamName },
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// End of the last complete record. A failed append truncates the file to this offset.
    end: u64,
}

impl Journal {
    /// Opens or creates a journal and returns its records. Truncates bytes after the last complete record.
    ///
    /// # Errors
    /// When the file cannot be opened, read or written. Damaged contents are not an error.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<Record>)> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let length = file.metadata()?.len();
        let mut bytes = Vec::new();
        (&mut file).take(MAX_JOURNAL).read_to_end(&mut bytes)?;
        let (records, whole) = read_records(&bytes);
        let mut journal = Self {
            file,
            end: whole as u64,
        };
        if journal.end < length {
            tracing::warn!(
                "{}: cut {} bytes of a torn record",
                path.display(),
                length.saturating_sub(journal.end)
            );
            journal.cut()?;
        }
        if whole == 0 {
            journal.append_bytes(MAGIC)?;
        }
        Ok((journal, records))
    }

    /// Appends a record. A partial write is truncated.
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
    /// When the flush fails.
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

/// Returns the complete records at the start of `bytes`, and the offset of their end.
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
