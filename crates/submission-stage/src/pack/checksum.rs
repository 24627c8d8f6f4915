//! The SHA-1 of a package, in the format of `sha1sum`. It identifies a file and does not protect it.

use std::{
    io::{self, Write},
    path::Path,
};

use regatta_fsutil::{hash::hex, regular_file};
use sha1::{Digest as _, Sha1};

use super::PackError;
use regatta_submission_check::files::{At, FileError, buffered, read_small};

/// A writer that hashes and counts the bytes that it passes to `out`.
pub(super) struct HashingWriter<W> {
    out: W,
    sha1: Sha1,
    length: u64,
}

impl<W> HashingWriter<W> {
    /// Creates a writer into `out`.
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            sha1: Sha1::new(),
            length: 0,
        }
    }

    /// Returns the SHA-1 in lower-case hexadecimal, and the number of bytes.
    pub(super) fn finish(self) -> (String, u64) {
        (hex(&self.sha1.finalize()), self.length)
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.sha1.update(bytes.get(..count).unwrap_or(bytes));
        self.length += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the SHA-1 of a file, in lower-case hexadecimal.
pub(super) fn sha1(path: &Path) -> Result<String, FileError> {
    let hash = || {
        let mut hasher = HashingWriter::new(io::sink());
        io::copy(&mut buffered(regular_file::open(path)?), &mut hasher)?;
        Ok(hasher.finish().0)
    };
    hash().at("read", path)
}

/// Returns the output of `sha1sum` in the package's directory.
pub(super) fn line(sha1: &str, tarball: &Path) -> String {
    let name = tarball.file_name().unwrap_or_default().to_string_lossy();
    format!("{sha1}  {name}\n")
}

/// Returns the SHA-1 in a checksum file.
pub(super) fn stated(path: &Path) -> Result<String, PackError> {
    let text = read_small(path, 1 << 16)?;
    let word = text.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    match std::str::from_utf8(word) {
        Ok(word) if word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Ok(word.to_ascii_lowercase())
        }
        _ => Err(PackError::ChecksumFile {
            path: path.to_owned(),
        }),
    }
}
