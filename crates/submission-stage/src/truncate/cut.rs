//! Cuts an accuracy log to its first 4096 characters, a mark and its last 4096 bytes.
//!
//! The official tool reads and writes the file as text. On LoadGen's logs, which are ASCII, this makes no difference. In other
//! files line ends become line feeds, as they do there. The official tool fails on invalid UTF-8 and on a cut within a character.
//! This module then continues with the unchanged bytes.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use regatta_fsutil::regular_file;

/// The size from which a log counts as uncut, in bytes (`MAX_ACCURACY_LOG_SIZE`).
pub const UNCUT_SIZE: u64 = 10 << 10;
/// The number of characters kept at the beginning and of bytes kept at the end (`VIEWABLE_SIZE`).
const KEPT: usize = 4096;
/// The mark in place of the removed text.
const MARK: &[u8] = b"\n\n...\n\n";
/// The number of bytes that hold 4096 characters, if each has four bytes and follows a carriage return.
const HEAD: u64 = 5 * KEPT as u64;

/// Returns the cut contents of a file, or `None` if it is shorter than 4096 bytes and stays unchanged.
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

/// Returns the first 4096 characters with line feeds as line ends, or `None` if they are not UTF-8 text.
fn first_characters(head: &[u8]) -> Option<Vec<u8>> {
    let valid = match std::str::from_utf8(head) {
        Ok(_) => head,
        Err(error) => head.get(..error.valid_up_to())?,
    };
    let text = as_text(valid)?;
    let text = std::str::from_utf8(&text).ok()?;
    match text.char_indices().nth(KEPT) {
        Some((end, _)) => text.get(..end).map(|kept| kept.as_bytes().to_vec()),
        // There are fewer characters: this is the whole file, or there are invalid bytes among the first 4096 characters.
        None if valid.len() == head.len() || text.chars().count() == KEPT => Some(text.as_bytes().to_vec()),
        None => None,
    }
}

/// Returns the text with line feeds as line ends, or `None` if it is not UTF-8 text.
fn as_text(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    if !text.contains('\r') {
        return Some(bytes.to_vec());
    }
    Some(text.replace("\r\n", "\n").replace('\r', "\n").into_bytes())
}
