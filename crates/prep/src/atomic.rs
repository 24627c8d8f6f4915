//! Writes only what differs, so that a preparation that changes nothing writes nothing. Does not flush to disk.

use std::{fs, io, path::Path};

use regatta_fsutil::atomic_file::AtomicFile;

/// Writes `bytes` to `path` atomically. Returns whether anything was written: an equal file is left alone.
///
/// The file is not flushed, so that a power cut may truncate it. Samples are therefore marked as unfinished until all of
/// them are on disk, and a second preparation repairs them because it compares contents.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(false);
    }
    AtomicFile::new(path).unflushed().write(bytes)?;
    Ok(true)
}
