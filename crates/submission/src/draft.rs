//! A tree that is being written: in a directory of its own beside its place, then moved there as a whole, so that it is
//! there entire or not at all. What goes into it is others' business.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::files::{At, FileError, hexadecimal, open};

/// Bytes copied at once.
const BLOCK: usize = 1 << 18;

/// Why a tree was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DraftError {
    /// The place is taken.
    #[error("{path} exists already: name a new directory", path = path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A tree on its way. Gone when it is dropped before it is finished.
#[derive(Debug)]
pub(crate) struct Draft {
    root: PathBuf,
    place: PathBuf,
}

impl Draft {
    /// Begins; what a killed call left behind is removed.
    pub(crate) fn begin(place: &Path) -> Result<Self, DraftError> {
        if fs::symlink_metadata(place).is_ok() {
            return Err(DraftError::Exists {
                path: place.to_owned(),
            });
        }
        let mut name = OsString::from(".");
        name.push(place.file_name().unwrap_or_default());
        name.push(".regatta-part");
        let root = place.with_file_name(name);
        match fs::remove_dir_all(&root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.at("remove", &root)?,
        }
        fs::create_dir_all(&root).at("create", &root)?;
        Ok(Self {
            root,
            place: place.to_owned(),
        })
    }

    /// Where it is being written.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a file at a path from the root on.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), FileError> {
        let to = self.root.join(path);
        make_parent(&to)?;
        let write = || {
            let mut file = File::create(&to)?;
            file.write_all(bytes)?;
            file.sync_data()
        };
        write().at("write", &to)
    }

    /// Copies a file to a path from the root on, and returns the SHA-256 of what was copied, hexadecimal.
    pub(crate) fn copy(&self, from: &Path, path: &Path) -> Result<String, FileError> {
        let to = self.root.join(path);
        make_parent(&to)?;
        copy(from, &to).at("copy", from)
    }

    /// Puts the tree in its place; how many files there are in it.
    pub(crate) fn finish(self) -> Result<usize, FileError> {
        let files = count(&self.root)?;
        fs::rename(&self.root, &self.place).at("move the tree to", &self.place)?;
        let parent = self
            .place
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent {
            // The rename is on the disk when its directory is.
            let sync = || File::open(parent)?.sync_all();
            sync().at("write", parent)?;
        }
        Ok(files)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After `finish` nothing is there any more; otherwise half a tree is of no use.
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn make_parent(to: &Path) -> Result<(), FileError> {
    match to.parent() {
        Some(parent) => fs::create_dir_all(parent).at("create", parent),
        None => Ok(()),
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<String> {
    let (mut from, mut to) = (open(from)?, File::create(to)?);
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
    Ok(hexadecimal(&sha.finalize()))
}

fn count(directory: &Path) -> Result<usize, FileError> {
    let mut files = 0;
    for entry in fs::read_dir(directory).at("list", directory)? {
        let path = entry.at("list", directory)?.path();
        files += if path.is_dir() { count(&path)? } else { 1 };
    }
    Ok(files)
}
