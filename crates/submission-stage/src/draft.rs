//! Writes a tree file by file; the tree appears completely or not at all. The caller chooses its contents.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::Path,
};

use regatta_fsutil::{hash::hex, regular_file};
use sha2::{Digest as _, Sha256};

use crate::draft_directory::{DraftDirectory, DraftError};
use regatta_submission_check::files::{At, FileError};

/// The number of bytes that are copied at once.
const BLOCK: usize = 1 << 18;

/// A tree that is being written. Dropping it before `finish` removes it.
#[derive(Debug)]
pub(crate) struct Draft {
    directory: DraftDirectory,
}

impl Draft {
    /// Begins a tree, and removes the rest of an earlier, killed process.
    pub(crate) fn begin(place: &Path) -> Result<Self, DraftError> {
        let directory = DraftDirectory::begin(place)?;
        directory.clear()?;
        Ok(Self { directory })
    }

    /// Returns the directory in which the tree is written.
    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file at a path relative to the root.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), FileError> {
        let to = self.root().join(path);
        make_parent(&to)?;
        let write = || {
            let mut file = File::create(&to)?;
            file.write_all(bytes)?;
            file.sync_data()
        };
        write().at("write", &to)
    }

    /// Copies a file to a path relative to the root. Returns the SHA-256 of the copied bytes, in hexadecimal.
    pub(crate) fn copy(&self, from: &Path, path: &Path) -> Result<String, FileError> {
        let to = self.root().join(path);
        make_parent(&to)?;
        copy(from, &to).at("copy", from)
    }

    /// Moves the tree to its place, and returns the number of its files.
    pub(crate) fn finish(self) -> Result<usize, FileError> {
        let files = count(self.root())?;
        self.directory.place()?;
        Ok(files)
    }
}

fn make_parent(to: &Path) -> Result<(), FileError> {
    match to.parent() {
        Some(parent) => fs::create_dir_all(parent).at("create", parent),
        None => Ok(()),
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<String> {
    let (mut from, mut to) = (regular_file::open(from)?, File::create(to)?);
    let (mut sha, mut block) = (Sha256::new(), vec![0; BLOCK]);
    loop {
        let count = match from.read(&mut block) {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let piece = block.get(..count).unwrap_or_default();
        sha.update(piece);
        to.write_all(piece)?;
    }
    to.sync_data()?;
    Ok(hex(&sha.finalize()))
}

fn count(directory: &Path) -> Result<usize, FileError> {
    let mut files = 0;
    for entry in fs::read_dir(directory).at("list", directory)? {
        let path = entry.at("list", directory)?.path();
        files += if path.is_dir() { count(&path)? } else { 1 };
    }
    Ok(files)
}
