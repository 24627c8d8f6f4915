//! Tar archives, compressed or not. The files of an uncompressed one can be listed from its headers alone.

use std::{
    fs::File,
    io::{BufReader, Read},
    path::Path,
};

use tar::{EntryType, Header};

use crate::{
    entry::{Entry, Visit},
    error::{ArchiveError, RefusedEntry},
};

/// The size of a block in bytes. A header is one block.
pub(crate) const BLOCK: u64 = 512;

/// Returns whether the bytes begin with a tar header, which is recognised by its checksum.
pub(crate) fn is_header(head: &[u8]) -> bool {
    let Some(block) = head.first_chunk::<512>() else {
        return false;
    };
    let header = Header::from_byte_slice(block);
    let signs = |byte: (usize, &u8)| match byte.0 {
        148..156 => u32::from(b' '),
        _ => u32::from(*byte.1),
    };
    let sum: u32 = block.iter().enumerate().map(signs).sum();
    header.cksum().is_ok_and(|stated| stated == sum)
}

/// Lists the files of an uncompressed tar from its headers.
pub(crate) fn list(file: File, length: u64, path: &Path) -> Result<Vec<Entry>, ArchiveError> {
    let mut entries = Vec::new();
    visit_seekable(file, length, path, &mut |entry, _| {
        entries.push(entry.clone());
        Ok(())
    })?;
    Ok(entries)
}

/// Visits the files of an uncompressed tar, and skips content that is not read. Checks the end, which is missing after an interrupted download.
pub(crate) fn visit_seekable(
    file: File,
    length: u64,
    path: &Path,
    visit: &mut Visit<'_>,
) -> Result<(), ArchiveError> {
    let read = ArchiveError::read(path);
    // The file is not buffered, because a buffer would be refilled after every skipped file.
    let mut archive = tar::Archive::new(file);
    let mut end = 0;
    for entry in archive.entries_with_seek().map_err(&read)? {
        let mut entry = entry.map_err(damaged(path))?;
        let bytes = entry.size();
        let begin = entry.raw_file_position();
        if begin.saturating_add(bytes) > length {
            return Err(ArchiveError::Truncated(path.to_owned()));
        }
        end = begin.saturating_add(bytes.next_multiple_of(BLOCK));
        visit_entry(&mut entry, path, visit)?;
    }
    // A tar ends with a block of zeros.
    if end.saturating_add(BLOCK) > length {
        return Err(ArchiveError::Truncated(path.to_owned()));
    }
    Ok(())
}

/// Visits the files of a tar from a decompressed stream.
pub(crate) fn visit_stream(
    stream: impl Read,
    path: &Path,
    visit: &mut Visit<'_>,
) -> Result<(), ArchiveError> {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let mut archive = tar::Archive::new(&mut stream);
    for entry in archive.entries().map_err(damaged(path))? {
        visit_entry(&mut entry.map_err(damaged(path))?, path, visit)?;
    }
    // The checksum is at the end of the gzip stream, so the rest must be read.
    let mut rest = [0; 1 << 12];
    while stream.read(&mut rest).map_err(damaged(path))? > 0 {}
    Ok(())
}

fn visit_entry(
    entry: &mut tar::Entry<'_, impl Read>,
    path: &Path,
    visit: &mut Visit<'_>,
) -> Result<(), ArchiveError> {
    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let refused = |reason| ArchiveError::Entry {
        path: path.to_owned(),
        name: name.clone(),
        reason,
    };
    match entry.header().entry_type() {
        EntryType::Regular | EntryType::Continuous => {
            let file = Entry::new(&name, entry.size()).map_err(refused)?;
            visit(&file, entry)
        }
        EntryType::Directory => {
            let directory = name.trim_end_matches('/').trim_start_matches("./");
            match directory.is_empty() || directory == "." {
                true => Ok(()),
                false => Entry::new(directory, 0).map(drop).map_err(refused),
            }
        }
        // Attributes of the archive, not of a file.
        EntryType::XGlobalHeader => Ok(()),
        EntryType::Symlink | EntryType::Link => Err(refused(RefusedEntry::Link)),
        _ => Err(refused(RefusedEntry::Special)),
    }
}

/// Returns a function that converts the error of an archive that cannot be parsed.
fn damaged(path: &Path) -> impl Fn(std::io::Error) -> ArchiveError + use<> {
    let path = path.to_owned();
    move |error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => ArchiveError::Truncated(path.clone()),
        _ => ArchiveError::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        },
    }
}
