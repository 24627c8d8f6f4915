//! Zip archives: the directory at their end, and files that are stored or deflated. Archives above 4 GiB (ZIP64) and of several parts are not
//! read.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek as _, SeekFrom},
    path::Path,
};

use flate2::{CrcReader, bufread::DeflateDecoder};

use crate::{
    entry::{Entry, Visit},
    error::{ArchiveError, RefusedEntry},
};

/// The bytes of the record at the end, without its comment.
const END: usize = 22;
/// The largest comment.
const MAX_COMMENT: usize = 0xffff;
/// The bytes of an entry of the directory, without its texts.
const DIRECTORY_ENTRY: usize = 46;
/// The bytes of the header before a file, without its texts.
const LOCAL_HEADER: usize = 30;
/// The largest directory that is read.
const MAX_DIRECTORY: u64 = 256 << 20;
/// The flag of an encrypted file.
const ENCRYPTED: u16 = 1;
/// The methods that are read.
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// The mask and value of a symbolic link in the mode of Unix.
const KIND_OF_FILE: u32 = 0o170_000;
const SYMBOLIC_LINK: u32 = 0o120_000;
/// What a field holds when ZIP64 has its value.
const ELSEWHERE: u32 = u32::MAX;

/// A file in the directory.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) entry: Entry,
    method: u16,
    crc: u32,
    compressed: u64,
    /// Where its local header begins.
    offset: u64,
}

/// Reads the directory.
pub(crate) fn directory(mut file: File, length: u64, path: &Path) -> Result<Vec<Member>, ArchiveError> {
    let read = ArchiveError::read(path);
    let tail_bytes = length.min((END + MAX_COMMENT) as u64);
    file.seek(SeekFrom::Start(length - tail_bytes)).map_err(&read)?;
    let mut tail = Vec::new();
    (&mut file)
        .take(tail_bytes)
        .read_to_end(&mut tail)
        .map_err(&read)?;
    let place = (0..=tail.len().saturating_sub(END))
        .rev()
        .find(|&place| tail[place..].starts_with(b"PK\x05\x06"));
    let end = place.and_then(|place| Fields(&tail).slice(place, END));
    let end = Fields(end.ok_or_else(|| ArchiveError::Truncated(path.to_owned()))?);
    let (count, bytes, offset) = (end.short(10), end.long(12), end.long(16));
    if end.short(4) != 0 || offset == ELSEWHERE || count == u16::MAX {
        return Err(damaged(
            path,
            "it is of ZIP64 or has several parts; unpack it with `unzip`",
        ));
    }
    if u64::from(offset) + u64::from(bytes) > length || u64::from(bytes) > MAX_DIRECTORY {
        return Err(damaged(path, "its directory is not in the file"));
    }
    file.seek(SeekFrom::Start(offset.into())).map_err(&read)?;
    let mut texts = Vec::new();
    file.take(bytes.into()).read_to_end(&mut texts).map_err(&read)?;
    members(&texts, usize::from(count), path)
}

/// Reads the entries of the directory.
fn members(directory: &[u8], count: usize, path: &Path) -> Result<Vec<Member>, ArchiveError> {
    let mut members = Vec::new();
    let mut place = 0;
    for _ in 0..count {
        let fields = Fields(directory)
            .slice(place, DIRECTORY_ENTRY)
            .filter(|fields| fields.starts_with(b"PK\x01\x02"));
        let fields = Fields(fields.ok_or_else(|| damaged(path, "its directory ends early"))?);
        let texts = [28, 30, 32].map(|field| usize::from(fields.short(field)));
        let name = Fields(directory).slice(place + DIRECTORY_ENTRY, texts[0]);
        let name = name.ok_or_else(|| damaged(path, "its directory ends early"))?;
        members.extend(member(&fields, &String::from_utf8_lossy(name), path)?);
        place += DIRECTORY_ENTRY + texts.iter().sum::<usize>();
    }
    Ok(members)
}

/// Makes the member of an entry. `None` for a directory.
fn member(fields: &Fields<'_>, name: &str, path: &Path) -> Result<Option<Member>, ArchiveError> {
    let refused = |reason| ArchiveError::Entry {
        path: path.to_owned(),
        name: name.to_owned(),
        reason,
    };
    let (flags, method) = (fields.short(8), fields.short(10));
    let [compressed, bytes, offset] = [20, 24, 42].map(|field| fields.long(field));
    if [compressed, bytes, offset].contains(&ELSEWHERE) {
        return Err(damaged(path, "it is of ZIP64; unpack it with `unzip`"));
    }
    if (fields.long(38) >> 16) & KIND_OF_FILE == SYMBOLIC_LINK {
        return Err(refused(RefusedEntry::Link));
    }
    if let Some(directory) = name.strip_suffix('/') {
        return Entry::new(directory, 0).map(|_| None).map_err(refused);
    }
    let entry = Entry::new(name, bytes.into()).map_err(refused)?;
    if flags & ENCRYPTED != 0 {
        return Err(refused(RefusedEntry::Encrypted));
    }
    if ![STORED, DEFLATED].contains(&method) {
        return Err(refused(RefusedEntry::Method));
    }
    Ok(Some(Member {
        entry,
        method,
        crc: fields.long(16),
        compressed: compressed.into(),
        offset: offset.into(),
    }))
}

/// Visits the files in the order of the directory.
pub(crate) fn visit(file: File, length: u64, path: &Path, visit: &mut Visit<'_>) -> Result<(), ArchiveError> {
    let read = ArchiveError::read(path);
    let members = directory(file.try_clone().map_err(&read)?, length, path)?;
    let mut file = BufReader::new(file);
    for member in &members {
        file.seek(SeekFrom::Start(member.offset)).map_err(&read)?;
        let mut header = [0; LOCAL_HEADER];
        file.read_exact(&mut header).map_err(&read)?;
        let fields = Fields(&header);
        if !header.starts_with(b"PK\x03\x04") {
            return Err(damaged(path, "a file is not where the directory says"));
        }
        let texts = i64::from(fields.short(26)) + i64::from(fields.short(28));
        file.seek_relative(texts).map_err(&read)?;
        let compressed = (&mut file).take(member.compressed);
        let mut content = Content::new(member, compressed);
        visit(&member.entry, &mut content)?;
    }
    Ok(())
}

/// The content of a file, which is compared with its checksum at its end.
struct Content<R: io::BufRead> {
    data: CrcReader<Method<R>>,
    expected: u32,
    left: u64,
}

enum Method<R: io::BufRead> {
    Stored(R),
    Deflated(DeflateDecoder<R>),
}

impl<R: io::BufRead> Content<R> {
    fn new(member: &Member, compressed: R) -> Self {
        let data = match member.method {
            STORED => Method::Stored(compressed),
            _ => Method::Deflated(DeflateDecoder::new(compressed)),
        };
        Self {
            data: CrcReader::new(data),
            expected: member.crc,
            left: member.entry.bytes,
        }
    }
}

impl<R: io::BufRead> Read for Method<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(data) => data.read(buffer),
            Self::Deflated(data) => data.read(buffer),
        }
    }
}

impl<R: io::BufRead> Read for Content<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let count = self.data.read(buffer)?;
        // A reader adds the buffer's length, which is a usize.
        let Some(left) = self.left.checked_sub(count as u64) else {
            return Err(io::Error::other("a file is larger than the directory says"));
        };
        self.left = left;
        match count {
            0 if left > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            0 if self.data.crc().sum() != self.expected => {
                Err(io::Error::other("a file differs from its checksum"))
            }
            count => Ok(count),
        }
    }
}

/// Little-endian fields of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn slice(&self, place: usize, length: usize) -> Option<&'a [u8]> {
        self.0.get(place..place.checked_add(length)?)
    }

    /// Returns the two bytes at `place`, 0 where the record is shorter.
    fn short(&self, place: usize) -> u16 {
        let bytes = self.slice(place, 2).and_then(|bytes| bytes.try_into().ok());
        u16::from_le_bytes(bytes.unwrap_or_default())
    }

    /// Returns the four bytes at `place`, 0 where the record is shorter.
    fn long(&self, place: usize) -> u32 {
        let bytes = self.slice(place, 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_le_bytes(bytes.unwrap_or_default())
    }
}

fn damaged(path: &Path, reason: &str) -> ArchiveError {
    ArchiveError::Damaged {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}
