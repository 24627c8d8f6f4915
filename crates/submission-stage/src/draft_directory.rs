//! A directory in which a tree is prepared, beside the place where the complete tree appears.
//!
//! A lock prevents two processes that write the same tree from mixing their files. The caller chooses the contents.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use regatta_fsutil::atomic_file::sync_directory;
use rustix::fs::{FlockOperation, flock, syncfs};

use regatta_submission_check::files::{At, FileError};

/// The error if a tree was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DraftError {
    /// The place exists already.
    #[error("{path} exists already: name a new directory", path = path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// Another process is writing the tree.
    #[error("another process is writing {path}; hint: wait until it has ended, or name another directory", path = path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A locked directory beside its final place. Dropping it before `place` removes it.
#[derive(Debug)]
pub(crate) struct DraftDirectory {
    path: PathBuf,
    place: PathBuf,
    /// The open directory, which holds the lock until it is closed.
    lock: File,
    removed_on_drop: bool,
}

impl DraftDirectory {
    /// Creates and locks the directory for `place`. It may contain files of a process that was killed.
    pub(crate) fn begin(place: &Path) -> Result<Self, DraftError> {
        let mut name = OsString::from(".");
        name.push(place.file_name().unwrap_or_default());
        name.push(".regatta-part");
        let path = place.with_file_name(name);
        let draft = Self {
            lock: lock(&path, place)?,
            path,
            place: place.to_owned(),
            removed_on_drop: true,
        };
        // Checked under the lock, because another process may just have placed its tree.
        if fs::symlink_metadata(place).is_ok() {
            return Err(DraftError::Exists {
                path: place.to_owned(),
            });
        }
        Ok(draft)
    }

    /// Returns the directory's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the directory has no entries.
    pub(crate) fn is_empty(&self) -> Result<bool, FileError> {
        let mut entries = fs::read_dir(&self.path).at("list", &self.path)?;
        Ok(entries.next().is_none())
    }

    /// Removes everything in the directory.
    pub(crate) fn clear(&self) -> Result<(), FileError> {
        for entry in fs::read_dir(&self.path).at("list", &self.path)? {
            let entry = entry.at("list", &self.path)?;
            let path = entry.path();
            let removed = match entry.file_type().at("look at", &path)?.is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            removed.at("remove", &path)?;
        }
        Ok(())
    }

    /// Keeps the directory unchanged, and returns its path.
    pub(crate) fn leave(mut self) -> PathBuf {
        self.removed_on_drop = false;
        self.path.clone()
    }

    /// Flushes the complete file system: one call for the thousands of files of a tree.
    pub(crate) fn flush(&self) -> Result<(), FileError> {
        syncfs(&self.lock)
            .map_err(io::Error::from)
            .at("flush", &self.path)
    }

    /// Moves the directory to its place.
    pub(crate) fn place(mut self) -> Result<(), FileError> {
        fs::rename(&self.path, &self.place).at("move the tree to", &self.place)?;
        // From now on, another process may begin a tree under the same name.
        self.removed_on_drop = false;
        let parent = self.place.parent().unwrap_or(Path::new(""));
        sync_directory(parent).at("flush", parent)
    }
}

impl Drop for DraftDirectory {
    fn drop(&mut self) {
        if self.removed_on_drop {
            // A partial tree is useless. The next process removes anything that remains.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Locks a directory until it is closed, so that only this process writes `place`.
pub(crate) fn lock_for(place: &Path, directory: &File, path: &Path) -> Result<(), DraftError> {
    match flock(directory, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(DraftError::Busy {
            path: place.to_owned(),
        }),
        locked => Ok(locked.map_err(io::Error::from).at("lock", path)?),
    }
}

/// Creates the directory if it does not exist, and locks it.
fn lock(path: &Path, place: &Path) -> Result<File, DraftError> {
    loop {
        fs::create_dir_all(path).at("create", path)?;
        let directory = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened.at("open", path)?,
        };
        lock_for(place, &directory, path)?;
        // Its former owner may have placed or removed it before the lock was taken.
        let locked = directory.metadata().at("look at", path)?;
        if fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (locked.dev(), locked.ino())) {
            return Ok(directory);
        }
    }
}
