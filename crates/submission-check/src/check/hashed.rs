//! Hashes a file while it is read. Power sessions name the SHA-1 of logs whose contents are checked too.

use std::{
    fs::File,
    io::{self, Read},
};

use regatta_fsutil::hash::hex;
use sha1::{Digest as _, Sha1};

use crate::tree::Tree;

/// The number of bytes per read of the unread rest.
const BLOCK: usize = 1 << 16;

/// An open file and the hash of the bytes read so far.
pub(crate) struct Hashed {
    file: File,
    sha1: Sha1,
}

impl Hashed {
    /// Opens the file at `path` of `tree`.
    ///
    /// # Errors
    /// Returns the errors of [`Tree::open`].
    pub(crate) fn open(tree: &Tree, path: &str) -> io::Result<Self> {
        Ok(Self {
            file: tree.open(path)?,
            sha1: Sha1::new(),
        })
    }

    /// Reads the rest of the file and returns the complete file's SHA-1 in lower-case hexadecimal.
    ///
    /// # Errors
    /// Returns the error of reading the file.
    pub(crate) fn sha1(mut self) -> io::Result<String> {
        let mut block = vec![0; BLOCK];
        loop {
            match self.read(&mut block) {
                Ok(0) => return Ok(hex(&self.sha1.finalize())),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
    }
}

impl Read for Hashed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        self.sha1.update(into.get(..count).unwrap_or_default());
        Ok(count)
    }
}
