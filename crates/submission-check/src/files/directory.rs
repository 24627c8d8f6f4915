//! Opens directories and files so that the opened entry is the one that was checked.
//!
//! Paths are resolved relative to an open directory. A symbolic link is followed only if the caller allows it. An opened file is
//! checked before it is used. A tree that changes meanwhile therefore cannot redirect a read. A FIFO in place of a file cannot
//! block it.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::Path,
};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, openat, statat};

/// The number of bytes of directory entries that are read at once.
const BLOCK: usize = 1 << 15;

/// The treatment of a symbolic link in the last part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Links are followed.
    Follow,
    /// A link is an error.
    Refuse,
}

impl Links {
    fn flags(self) -> OFlags {
        match self {
            Self::Follow => OFlags::empty(),
            Self::Refuse => OFlags::NOFOLLOW,
        }
    }
}

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryType {
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

impl EntryType {
    /// Converts a file type. Returns `None` if the file system does not store the type in the directory.
    fn of(file_type: FileType) -> Option<Self> {
        match file_type {
            FileType::Directory => Some(Self::Directory),
            FileType::RegularFile => Some(Self::File),
            FileType::Symlink => Some(Self::Link),
            FileType::Unknown => None,
            _ => Some(Self::Special),
        }
    }
}

/// An entry of a directory; links are not followed.
#[derive(Debug)]
pub struct DirectoryEntry {
    pub name: OsString,
    /// The type, or the error of reading it from the entry itself if the directory does not store it.
    pub entry_type: io::Result<EntryType>,
}

/// An open directory.
#[derive(Debug)]
pub struct Directory(OwnedFd);

impl Directory {
    /// Opens the directory at `path`, or the one to which a link there leads.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn open(path: &Path) -> io::Result<Self> {
        open_directory(CWD, path, Links::Follow)
    }

    /// Opens a directory below this one. The empty path is the directory itself.
    ///
    /// # Errors
    /// Returns the system's error, also if the path is a link and links are refused.
    pub fn directory(&self, path: &Path, links: Links) -> io::Result<Self> {
        open_directory(&self.0, path, links)
    }

    /// Opens a regular file below this directory for reading.
    ///
    /// # Errors
    /// Returns the system's error. A path that is not a regular file is an error, and so is a link if links are refused.
    pub fn file(&self, path: &Path, links: Links) -> io::Result<File> {
        open_file(&self.0, path, links)
    }

    /// Returns the type of the entry at a path below this directory, and its size in bytes.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn look_at(&self, path: &Path, links: Links) -> io::Result<(EntryType, u64)> {
        let flags = match links {
            Links::Follow => AtFlags::empty(),
            Links::Refuse => AtFlags::SYMLINK_NOFOLLOW,
        };
        let data = statat(&self.0, path, flags)?;
        let file_type = EntryType::of(FileType::from_raw_mode(data.st_mode));
        Ok((
            file_type.unwrap_or(EntryType::Special),
            u64::try_from(data.st_size).unwrap_or_default(),
        ))
    }

    /// Returns all entries in name order.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn entries(&self) -> io::Result<Vec<DirectoryEntry>> {
        let mut block = Vec::with_capacity(BLOCK);
        let mut listing = RawDir::new(&self.0, block.spare_capacity_mut());
        let mut entries = Vec::new();
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let entry_type = match EntryType::of(entry.file_type()) {
                Some(entry_type) => Ok(entry_type),
                None => self
                    .look_at(Path::new(name), Links::Refuse)
                    .map(|(entry_type, _)| entry_type),
            };
            entries.push(DirectoryEntry {
                name: name.to_owned(),
                entry_type,
            });
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }
}

/// Opens a regular file for reading.
///
/// # Errors
/// Returns the system's error. A path that is not a regular file is an error, and so is a link if links are refused.
pub(super) fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    open_file(CWD, path, links)
}

fn open_directory(from: impl std::os::fd::AsFd, path: &Path, links: Links) -> io::Result<Directory> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY | links.flags();
    Ok(Directory(openat(from, path, flags, Mode::empty())?))
}

fn open_file(from: impl std::os::fd::AsFd, path: &Path, links: Links) -> io::Result<File> {
    // Without NONBLOCK, opening a FIFO waits for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | links.flags();
    let file = match openat(from, path, flags, Mode::empty()) {
        Err(rustix::io::Errno::LOOP) if links == Links::Refuse => {
            return Err(io::Error::other("it is a symbolic link"));
        }
        opened => File::from(opened?),
    };
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(not_regular())
    }
}

/// Returns the error for a FIFO, a socket, a device or a directory in place of a file.
fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}
