//! What is left of an accuracy log: its first 4096 characters, a mark, its last 4096 bytes.
//!
//! The official tool reads and writes the file as text. On LoadGen's logs, which are ASCII, that makes no difference;
//! on others its line ends become line feeds here as there. Where it would stop with an error (bytes that are no UTF-8,
//! a cut within a character) this goes on with the bytes as they are.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use regatta_fsutil::regular_file;

/// Logs of this size and more count as not yet cut (`MAX_ACCURACY_LOG_SIZE`).
pub const UNCUT_SIZE: u64 = 10 << 10;
/// Characters kept at the beginning, bytes at the end (`VIEWABLE_SIZE`).
const KEPT: usize = 4096;
/// Stands for what was taken out.
const MARK: &[u8] = b"\n\n...\n\n";
/// Holds 4096 characters, also when each takes four bytes and a carriage return goes before it.
const HEAD: u64 = 5 * KEPT as u64;

/// What is to be left of a file; `None` when it is left alone, being shorter than 4096 bytes.
pub(super) fn cut_file(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = regular_file::open(path)?;
    let size = file.metadata()?.len();
    if size < KEPT as u64 {
        return Ok(None);
    }
    let mut head = Vec::new();
    (&mut file).take(HEAD).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(size - KEPT as u64))?;
    let mut tail = Vec::new();
    file.take(KEPT as u64).read_to_end(&mut tail)?;

    let mut left = first_characters(&head).unwrap_or_else(|| head.get(..KEPT).unwrap_or(&head).to_vec());
    left.extend_from_slice(MARK);
    left.extend_from_slice(&as_text(&tail).unwrap_or(tail));
    Ok(Some(left))
}

/// The first 4096 characters with line ends as line feeds; `None` when they are no text.
fn first_characters(head: &[u8]) -> Option<Vec<u8>> {
    let valid = match std::str::from_utf8(head) {
        Ok(_) => head,
        Err(error) => head.get(..error.valid_up_to())?,
    };
    let text = as_text(valid)?;
    let text = std::str::from_utf8(&text).ok()?;
    match text.char_indices().nth(KEPT) {
        Some((end, _)) => text.get(..end).map(|kept| kept.as_bytes().to_vec()),
        // Fewer characters than that: the whole file, or faulty bytes among the first 4096.
        None if valid.len() == head.len() || text.chars().count() == KEPT => Some(text.as_bytes().to_vec()),
        None => None,
    }
}

/// Text with line ends as line feeds; `None` when it is no text.
fn as_text(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    if !text.contains('\r') {
        return Some(bytes.to_vec());
    }
    Some(text.replace("\r\n", "\n").replace('\r', "\n").into_bytes())
}
