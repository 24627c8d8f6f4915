//! Files that appear whole or not at all.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write},
    path::Path,
};

/// Gives `path` the content `bytes`. Whoever reads it at the same time sees the old file or the new one.
///
/// Returns whether anything was written: a file that has this content already is left alone.
///
/// The rename is not forced to disk. After a power cut a file may lack its end; of samples this is known by what lies beside them
/// until all of them are on the disk, and a second preparation mends it, because it compares contents.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(false);
    }
    replace(path, |file| file.write_all(bytes))?;
    Ok(true)
}

/// Gives `path` the content that `fill` writes; leaves it as it was when that fails.
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
        // The first error is the one to tell; a part left behind does no harm.
        drop(fs::remove_file(&part));
    })
}
