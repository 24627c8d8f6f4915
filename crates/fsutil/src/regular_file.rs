//! Reads files whose paths come from users: regular files only, up to a size limit. Opening a named pipe would wait for a writer for ever,
//! and reading a device like `/dev/zero` would fill the memory. This module writes nothing.

use std::{
    fs::{self, File, FileType, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

/// Size limit in bytes for texts that users write: settings, plans, descriptions, lists.
pub const MAX_TEXT: u64 = 16 << 20;
/// Size limit in bytes for documents that programs write, for example a run's evidence.
pub const MAX_DOCUMENT: u64 = 64 << 20;

/// Opens a regular file, or a link to one.
///
/// # Errors
/// The system's error; also an error for a directory, a pipe, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    // The type is checked before opening, because opening a device can have side effects.
    expect_regular(fs::metadata(path)?.file_type())?;
    // The file may have become a pipe in the meantime; `O_NONBLOCK` avoids waiting for it. Regular files ignore the flag.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    expect_regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// As [`open`]; [`io::ErrorKind::FileTooLarge`] for a longer file.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One more byte shows that the file exceeds the limit. Its length is not enough: it may grow, and files in /proc state none.
    open(path)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let message = format!("it is larger than {limit} bytes, the maximum for this file");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Reads a regular text file of at most [`MAX_TEXT`] bytes.
///
/// # Errors
/// As [`read`]; also when the content is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    io::read_to_string(read(path, MAX_TEXT)?.as_slice())
}

fn expect_regular(kind: FileType) -> io::Result<()> {
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "directory",
        kind if kind.is_fifo() => "named pipe",
        kind if kind.is_socket() => "socket",
        _ => "device",
    };
    Err(io::Error::other(format!("it is a {what}, not a regular file")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let directory = std::env::temp_dir().join(format!("regular-file-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let (pipe, text) = (directory.join("pipe"), directory.join("text"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        fs::write(&text, "12345").unwrap();
        let refused = |path: &Path| read(path, 5).unwrap_err().to_string();
        assert_eq!(refused(&pipe), "it is a named pipe, not a regular file");
        assert_eq!(refused(&directory), "it is a directory, not a regular file");
        assert_eq!(
            refused(Path::new("/dev/zero")),
            "it is a device, not a regular file"
        );
        assert_eq!(read(&text, 5).unwrap(), b"12345");
        assert_eq!(read(&text, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_text(&text).unwrap(), "12345");
        let missing = open(&directory.join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(&directory).unwrap();
    }
}
