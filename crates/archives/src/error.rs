//! Errors of reading and unpacking archives.

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
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {path}", path = path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file is not a supported archive.
    #[error("{path} is not a tar, tar.gz or zip archive", path = .0.display())]
    Kind(PathBuf),
    /// The archive ends too early.
    #[error("{path} is incomplete: the archive ends early, as after an interrupted download", path = .0.display())]
    Truncated(PathBuf),
    /// The archive contradicts itself, or uses an unsupported format.
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged { path: PathBuf, reason: String },
    /// The archive contains an entry that is never unpacked.
    #[error("{path} is refused: its entry `{name}` {reason}", path = path.display())]
    Entry {
        path: PathBuf,
        name: String,
        reason: RefusedEntry,
    },
    /// There are more files than expected.
    #[error("{path} is refused: it has more than {most} files", path = path.display())]
    TooMany {
        path: PathBuf,
        /// The maximum number of files.
        most: u64,
    },
    /// The files are larger than expected.
    #[error("{path} is refused: its files have more than {most} bytes", path = path.display())]
    TooLarge {
        path: PathBuf,
        /// The maximum total size in bytes.
        most: u64,
    },
}

/// The reason why an entry is not unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedEntry {
    /// It is a symbolic or hard link.
    #[error("is a link")]
    Link,
    /// It is a device, a pipe, or another special file.
    #[error("is neither a file nor a directory")]
    Special,
    /// Its path leads out of the directory, or is not a valid path.
    #[error("leads out of the directory or is not a valid path")]
    Path,
    /// It is encrypted.
    #[error("is encrypted")]
    Encrypted,
    /// It is compressed with an unsupported method.
    #[error("is compressed with an unknown method")]
    Method,
}

impl ArchiveError {
    /// Returns a function that converts an error of reading the archive. An early end becomes [`ArchiveError::Truncated`].
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

    /// Returns a function that converts an error of writing the file.
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }
}
