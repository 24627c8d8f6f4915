//! Free space of file systems. Reserves none.

use std::{io, path::Path};

/// Bytes that an unprivileged process can still write on the file system of `path`.
///
/// # Errors
/// As the system reports.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
