//! Touching files so that a crash at any point leaves the old content or the new one, and so that an error names its
//! path. What the files mean is told elsewhere.

mod directory;

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

pub(crate) use directory::{Directory, EntryType, Links};
use regatta_fsutil::regular_file;
use sha2::{Digest, Sha256};

/// Bytes read at once where whole files go by.
const BLOCK: usize = 1 << 20;

/// Something that could not be done to a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}", path = path.display())]
pub struct FileError {
    /// What was tried.
    pub action: &'static str,
    /// To what.
    pub path: PathBuf,
    /// The system's reason.
    #[source]
    pub source: io::Error,
}

/// Adds to a system error what was tried to which path.
pub(crate) trait At<T> {
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

/// Opens a regular file that is no link.
pub(crate) fn open_no_link(path: &Path) -> io::Result<File> {
    directory::open_regular(path, Links::Refuse)
}

/// Reads a whole regular file, or what a link to one leads to.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file, or a link to one.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Opening a device can do something to it.
    if fs::metadata(path)?.is_file() {
        directory::open_regular(path, Links::Follow)
    } else {
        Err(directory::not_regular())
    }
}

/// Reads a file that is known to be small; more than `limit` bytes are an error, not a full memory.
pub(crate) fn read_small(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    regular_file::read(path, limit).at("read", path)
}

/// Replaces `path` by `content`: written beside it, then renamed over it. The permissions of a former file stay.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), FileError> {
    replace_with(path, |out| out.write_all(content))
}

/// The same with content that is written bit by bit.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), FileError> {
    let beside = beside(path);
    let attempt = || {
        let file = File::create(&beside)?;
        if let Ok(former) = fs::metadata(path) {
            file.set_permissions(former.permissions())?;
        }
        let mut out = BufWriter::with_capacity(1 << 16, file);
        write(&mut out)?;
        out.into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_data()?;
        fs::rename(&beside, path)
    };
    attempt()
        .inspect_err(|_| {
            // What is left is of no use; that it may stay is said by the error itself.
            let _ = fs::remove_file(&beside);
        })
        .at("write", path)
}

/// Copies a regular file's content and permissions.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = open(from)?;
    let permissions = source.metadata()?.permissions();
    let mut target = File::create(to)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(permissions)
}

/// Whether `path` is `directory` or lies in it, links followed. What does not exist yet lies where its nearest ancestor does.
pub(crate) fn lies_in(path: &Path, directory: &Path) -> bool {
    let whole = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let ancestor = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
        ancestor.unwrap_or(path)
    };
    whole(path).starts_with(whole(directory))
}

/// Makes `to` the same file as `from` was: linked where the file system can (nothing is copied then), else copied,
/// with its content on the disk before this returns. `to` must not be there.
pub(crate) fn keep(from: &Path, to: &Path) -> Result<(), FileError> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).at("create", parent)?;
    }
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    let beside = beside(to);
    let copied = || {
        copy(from, &beside)?;
        File::open(&beside)?.sync_data()?;
        fs::rename(&beside, to)
    };
    copied()
        .inspect_err(|_| {
            let _ = fs::remove_file(&beside);
        })
        .at("keep a copy at", to)
}

/// A name in the same directory that no submission has.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".regatta-part");
    path.with_file_name(name)
}

/// The SHA-256 of a whole file, in lower-case hexadecimal, and its length.
pub(crate) fn sha256(path: &Path) -> Result<(String, u64), FileError> {
    let hash = || {
        let mut file = open(path)?;
        let mut block = vec![0; BLOCK];
        let (mut sha, mut length) = (Sha256::new(), 0_u64);
        loop {
            match file.read(&mut block) {
                Ok(0) => return Ok((hexadecimal(&sha.finalize()), length)),
                Ok(count) => {
                    sha.update(block.get(..count).unwrap_or_default());
                    length += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    };
    hash().at("read", path)
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| DIGITS.get(usize::from(digit)).map(|&digit| char::from(digit)))
        .collect()
}

/// The directories in `path` by name, sorted; links to directories count. Nothing when `path` is not there.
pub(crate) fn directories(path: &Path) -> Result<Vec<OsString>, FileError> {
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

/// Reads in large pieces.
pub(crate) fn buffered(input: impl io::Read) -> io::BufReader<impl io::Read> {
    io::BufReader::with_capacity(1 << 18, input)
}
