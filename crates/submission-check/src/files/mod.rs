//! File access of this package, with errors that name the path. `regatta-fsutil` provides atomic replacement and hashes.

mod directory;

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufWriter, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

pub use directory::{Directory, EntryType, Links};
use regatta_fsutil::{atomic_file::AtomicFile, hash::sha256_of_file, regular_file};

/// The error of an action on a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}", path = path.display())]
pub struct FileError {
    /// The action that failed.
    pub action: &'static str,
    pub path: PathBuf,
    /// The system's reason.
    #[source]
    pub source: io::Error,
}

/// Adds the action and the path to a system error.
pub trait At<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|source| FileError {
            action,
            path: path.to_owned(),
            source,
        })
    }
}

/// Opens a regular file; a link is an error.
pub fn open_no_link(path: &Path) -> io::Result<File> {
    directory::open_regular(path, Links::Refuse)
}

/// Reads a complete regular file, following links.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular_file::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a small file. More than `limit` bytes are an error, which bounds memory.
pub fn read_small(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    regular_file::read(path, limit).at("read", path)
}

/// Replaces `path` with `content`, keeping the permissions of an existing file.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), FileError> {
    AtomicFile::new(path).write(content).at("write", path)
}

/// Replaces `path` with the output of `write`, and returns its value. After an error the old content remains.
pub fn replace_with<T, E: From<FileError>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let mut result = None;
    let replaced = AtomicFile::new(path).write_with(|out| {
        let written = write(out);
        // The actual error is in `result`.
        let outcome = written
            .as_ref()
            .map(drop)
            .map_err(|_| io::Error::other("not written"));
        result = Some(written);
        outcome
    });
    if let Some(Err(error)) = result {
        return Err(error);
    }
    replaced.at("write", path)?;
    let nothing = || io::Error::other("nothing was written");
    match result {
        Some(written) => written,
        None => Err(nothing()).at("write", path)?,
    }
}

/// Copies a regular file's content and permissions.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = regular_file::open(from)?;
    let permissions = source.metadata()?.permissions();
    let mut target = File::create(to)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(permissions)
}

/// Returns whether `path` is `directory` or inside it, with links followed. A path that does not exist counts as its nearest
/// ancestor.
pub fn lies_in(path: &Path, directory: &Path) -> bool {
    let whole = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let ancestor = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
        ancestor.unwrap_or(path)
    };
    whole(path).starts_with(whole(directory))
}

/// Makes `to` a hard link to `from`, or a copy if the file system does not support links.
///
/// A copy's content is on the disk before this returns. `to` must not exist.
pub fn keep(from: &Path, to: &Path) -> Result<(), FileError> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).at("create", parent)?;
    }
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    let copied = || {
        let mut source = regular_file::open(from)?;
        let mode = source.metadata()?.permissions().mode();
        let target = AtomicFile::new(to).mode(mode & 0o7777);
        target.write_with(|out| io::copy(&mut source, out).map(drop))
    };
    copied().at("keep a copy at", to)
}

/// Returns the SHA-256 of a complete file, in lower-case hexadecimal, and its length.
pub fn sha256(path: &Path) -> Result<(String, u64), FileError> {
    let hash = sha256_of_file(path).at("read", path)?;
    Ok((hash.hex(), hash.length))
}

/// Returns the sorted names of the directories in `path`, including links to directories. Empty if `path` does not exist.
pub fn directories(path: &Path) -> Result<Vec<OsString>, FileError> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.at("list", path)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.at("list", path)?;
        if entry.path().is_dir() {
            names.push(entry.file_name());
        }
    }
    names.sort();
    Ok(names)
}

/// Wraps `input` in a large buffer.
pub fn buffered(input: impl io::Read) -> io::BufReader<impl io::Read> {
    io::BufReader::with_capacity(1 << 18, input)
}
