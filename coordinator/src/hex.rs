//! Hexadecimal text of hashes, as documents and people read them, and the hash of a whole file.

use std::{
    fmt::Write as _,
    io::{self, Read as _},
    path::Path,
};

use regatta_fsutil::regular_file;
use sha2::{Digest as _, Sha256};

/// Lower-case hexadecimal digits of the bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// SHA-256 of bytes in memory.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Length and SHA-256 of a file, read in pieces.
///
/// # Errors
/// What reading the file gave.
pub(crate) fn sha256_of_file(path: &Path) -> io::Result<(u64, [u8; 32])> {
    let mut file = regular_file::open(path)?;
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 256 * 1024];
    let mut length = 0;
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((length, hasher.finalize().into()));
        }
        hasher.update(&piece[..read]);
        length += read as u64;
    }
}
