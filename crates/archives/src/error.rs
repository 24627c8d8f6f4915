//! The errors of archives.

use std::{
    io,
    path::{Path, PathBuf},
};

/// An archive that cannot be read or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive cannot be read.
    #[error("cannot read {path}", path = path.display())]
    Read {
        /// The archive.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is of another kind.
    #[error("{path} is not a tar, tar.gz or zip archive", path = .0.display())]
    Kind(PathBuf),
    /// The archive has no end.
    #[error("{path} is incomplete: the archive ends early, as after an interrupted download", path = .0.display())]
    Truncated(PathBuf),
    /// The archive contradicts itself, or has a form that is not read.
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged {
        /// The archive.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// An entry that is not unpacked.
    #[error("{path} is refused: its entry `{name}` {reason}", path = path.display())]
    Entry {
        /// The archive.
        path: PathBuf,
        /// The entry's name.
        name: String,
        /// Why.
        reason: RefusedEntry,
    },
    /// There are more files than expected.
    #[error("{path} is refused: it has more than {most} files", path = path.display())]
    TooMany {
        /// The archive.
        path: PathBuf,
        /// The most files.
        most: u64,
    },
    /// The files are larger than expected.
    #[error("{path} is refused: its files have more than {most} bytes", path = path.display())]
    TooLarge {
        /// The archive.
        path: PathBuf,
        /// The most bytes.
        most: u64,
    },
}

/// The reason why an entry is not unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedEntry {
    /// It is a symbolic or hard link.
    #[error("is a link")]
    Link,
    /// It is a device, a pipe or something else.
    #[error("is neither a file nor a directory")]
    Special,
    /// Its path leads out of the directory, or cannot be a path.
    #[error("leads out of the directory or is not a valid path")]
    Path,
    /// It is encrypted.
    #[error("is encrypted")]
    Encrypted,
    /// It is compressed in a way that is not read.
    #[error("is compressed with an unknown method")]
    Method,
}

impl ArchiveError {
    /// Returns a function that makes the error of reading an archive. An early end is [`ArchiveError::Truncated`].
    pub(crate) fn read(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated(path.clone()),
            _ => Self::Read {
                path: path.clone(),
                source,
            },
        }
    }

    /// Returns a function that makes the error of writing a file.
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }
}
