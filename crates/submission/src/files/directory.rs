//! Directories and files opened so that what is read is what was looked at.
//!
//! Everything is looked up in an open directory, a symbolic link is followed only where the caller says so, and an opened
//! file is checked before it is used. A tree that somebody changes meanwhile can therefore lead nowhere else, and a FIFO that
//! takes a file's place is not waited for.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::Path,
};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, openat, statat};

/// Bytes of directory entries read at once.
const BLOCK: usize = 1 << 15;

/// Whether the last part of a path may be a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// What a link leads to is taken.
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

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryType {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

impl EntryType {
    /// `None` where the file system does not tell without being asked for the entry itself.
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

/// An entry of a directory, links not followed.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    /// The error is of asking for the type, where the directory itself does not tell it.
    pub(crate) entry_type: io::Result<EntryType>,
}

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

impl Directory {
    /// Opens the directory at `path`, or the one that a link there leads to.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        open_directory(CWD, path, Links::Follow)
    }

    /// Opens a directory below this one; the empty path is the directory itself.
    ///
    /// # Errors
    /// As the system says; also when it is a link and links are refused.
    pub(crate) fn directory(&self, path: &Path, links: Links) -> io::Result<Self> {
        open_directory(&self.0, path, links)
    }

    /// Opens a regular file below this directory for reading.
    ///
    /// # Errors
    /// As the system says; also when it is a link and links are refused, and when it is no regular file.
    pub(crate) fn file(&self, path: &Path, links: Links) -> io::Result<File> {
        open_file(&self.0, path, links)
    }

    /// What lies at a path below this directory, and its size in bytes.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn look_at(&self, path: &Path, links: Links) -> io::Result<(EntryType, u64)> {
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

    /// All entries by name.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
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
            entries.push(Entry {
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
/// As the system says; also when it is a link and links are refused, and when it is no regular file.
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
    // Without NONBLOCK, opening a FIFO waits for somebody who writes.
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

/// What is said of a FIFO, a socket, a device or a directory where a file is asked for.
fn not_regular() -> io::Error {
    io::Error::other("it is no regular file")
}
