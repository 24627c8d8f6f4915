//! Free space of file systems. This module reserves none.

use std::{io, path::Path};

/// Returns the bytes that an unprivileged process can still write on the file system of `path`.
///
/// # Errors
/// The system's error.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
