//! Files that are there after a power cut: written aside, flushed, renamed, and the directory flushed.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// Flushes a directory, so that names made or renamed in it survive a power cut.
///
/// # Errors
/// What the operating system gave.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Writes a whole file so that either the old or the new content is there at any moment.
///
/// # Errors
/// What the operating system gave; the old content is then untouched.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    let mut aside_name = path.as_os_str().to_owned();
    aside_name.push(".new");
    let aside = PathBuf::from(aside_name);
    let mut file = File::create(&aside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&aside, path)?;
    sync_directory(directory)
}
