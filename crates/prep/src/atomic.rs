//! Atomic writes: a file has its old or its new content and never a part. Does not flush to disk.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write},
    path::Path,
};

/// Writes `bytes` to `path` atomically. Returns whether anything was written: an equal file is left alone.
///
/// The file is not flushed, so that a power cut may truncate it. Samples are therefore marked as unfinished until all of
/// them are on disk, and a second preparation repairs them because it compares contents.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(false);
    }
    replace(path, |file| file.write_all(bytes))?;
    Ok(true)
}

/// Writes the output of `fill` to `path` atomically. Leaves the file unchanged when `fill` fails.
pub(crate) fn replace(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = fs::File::create(&part).and_then(|mut file| {
        fill(&mut file)?;
        file.flush()
    });
    written.and_then(|()| fs::rename(&part, path)).inspect_err(|_| {
        // The first error is reported. A temporary file that remains only takes space.
        drop(fs::remove_file(&part));
    })
}
