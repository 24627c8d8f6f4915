//! Compares a source file with its published SHA-256. It does not read files.

use std::path::{Path, PathBuf};

use regatta_fsutil::hash::sha256_hex;

/// The error for a file that is not the published one.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path} is not the published file: its SHA-256 is {found}, the published one {expected}; hint: download it again as `regatta data show {benchmark}` shows",
    path = path.display()
)]
pub struct OtherFileError {
    path: PathBuf,
    found: String,
    expected: String,
    benchmark: String,
}

/// Checks the bytes of the file at `path`, if a hash is published.
///
/// # Errors
/// Returns [`OtherFileError`] when they have another hash.
pub fn check(
    path: &Path,
    bytes: &[u8],
    expected: Option<&str>,
    benchmark: &str,
) -> Result<(), OtherFileError> {
    let Some(expected) = expected else { return Ok(()) };
    let found = sha256_hex(bytes);
    if found == expected {
        return Ok(());
    }
    Err(OtherFileError {
        path: path.to_owned(),
        found,
        expected: expected.to_owned(),
        benchmark: benchmark.to_owned(),
    })
}
