//! Reading files that users name: regular files only, and no more of them than a limit. Opening a named pipe waits for a
//! writer without end, and reading a device such as `/dev/zero` fills the memory. Writes nothing.

use std::{
    fs::{self, File, FileType, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

/// The limit for texts that people write: settings, plans, descriptions, lists. In bytes.
pub const LARGEST_TEXT: u64 = 16 << 20;
/// The limit for documents that programs write, such as a run's evidence. In bytes.
pub const LARGEST_DOCUMENT: u64 = 64 << 20;

/// Opens a regular file, or a link to one.
///
/// # Errors
/// As the system says; also for a directory, a pipe, a socket or a device.
pub fn open(path: &Path) -> io::Result<File> {
    // Looked at before it is opened: opening a device can have effects.
    expect_regular(fs::metadata(path)?.file_type())?;
    // It may have become a pipe meanwhile: that is not waited for. For regular files the flag means nothing.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    expect_regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// The content of a regular file of at most `limit` bytes.
///
/// # Errors
/// As [`open`]; [`io::ErrorKind::FileTooLarge`] for a longer one.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more shows that there is more: a file may grow, and those below /proc state no length.
    open(path)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let message = format!("it is larger than {limit} bytes, which no such file is");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// The text in a regular file of at most [`LARGEST_TEXT`] bytes.
///
/// # Errors
/// As [`read`]; also for what is no UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    io::read_to_string(read(path, LARGEST_TEXT)?.as_slice())
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
