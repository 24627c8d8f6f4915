//! The package that is handed in: an encrypted tar with its SHA-1, as `pack_submission.sh` makes it.
//!
//! `mlperf_submission_<SUBMITTER>.tar.gz` is a gzipped tar of `closed/`, `open/` and `network/` (which the official script
//! forgets), encrypted by `openssl enc -aes256`; `mlperf_submission_<SUBMITTER>.sha1` holds what `sha1sum` prints of it.
//! Either side is opened by the other. Encryption is the system's `openssl`: see `docs/decisions`.
//!
//! [`pack`] looks at the tree's [`hygiene`] first and packs nothing that cannot be uploaded. Whether the submission is
//! valid is the checker's business.

mod archive;
mod checksum;
mod error;
mod hygiene;
mod metered;
mod openssl;
mod unpack;

use std::{
    fs,
    path::{Path, PathBuf},
};

pub use error::PackError;
pub use hygiene::{Blemish, DIVISIONS, Flaw, hygiene};
pub use openssl::Password;
pub use unpack::{UnpackLimits, unpack};

use crate::files::{At, lies_in, replace};

/// A finished package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The encrypted tar.
    pub tarball: PathBuf,
    /// The file with its SHA-1.
    pub sha1_file: PathBuf,
    /// The SHA-1, in lower-case hexadecimal.
    pub sha1: String,
    /// The tar's length in bytes.
    pub bytes: u64,
    /// Files in it.
    pub files: u64,
}

/// Packs the submission in `input` into `directory`, under the submitter's name.
///
/// Both files appear when they are whole; a package of the same name is replaced.
///
/// # Errors
/// When the tree has flaws, all of which are named; when there is no `openssl`; when something cannot be read or written.
pub fn pack(
    input: &Path,
    submitter: &str,
    directory: &Path,
    password: &Password,
) -> Result<Package, PackError> {
    let (tarball, sha1_file) = package_files(directory, submitter)?;
    let divisions: Vec<_> = DIVISIONS
        .into_iter()
        .filter(|name| input.join(name).is_dir())
        .collect();
    if divisions.is_empty() {
        return Err(PackError::NoSubmission {
            input: input.to_owned(),
        });
    }
    let flaws = hygiene(input)?;
    if !flaws.is_empty() {
        return Err(PackError::Unclean { flaws });
    }
    if lies_in(directory, input) {
        return Err(PackError::Inside {
            directory: directory.to_owned(),
        });
    }
    fs::create_dir_all(directory).at("create", directory)?;
    let beside = tarball.with_extension("gz.regatta-part");
    let written = openssl::encrypt(&beside, password, |out| archive::write(input, &divisions, out));
    let files = written.inspect_err(|_| {
        // Half a package is of no use.
        let _ = fs::remove_file(&beside);
    })?;
    let (sha1, bytes) = checksum::sha1(&beside)?;
    // The old checksum goes first: at no time does one stand beside a package that it does not fit.
    if sha1_file.exists() {
        fs::remove_file(&sha1_file).at("remove", &sha1_file)?;
    }
    fs::rename(&beside, &tarball).at("write", &tarball)?;
    replace(&sha1_file, checksum::line(&sha1, &tarball).as_bytes())?;
    Ok(Package {
        tarball,
        sha1_file,
        sha1,
        bytes,
        files,
    })
}

/// The two files of a package.
pub(crate) fn package_files(directory: &Path, submitter: &str) -> Result<(PathBuf, PathBuf), PackError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if submitter.is_empty() || submitter.starts_with('.') || !submitter.chars().all(plain) {
        return Err(PackError::NoName {
            submitter: submitter.to_owned(),
        });
    }
    let file = |end: &str| directory.join(format!("mlperf_submission_{submitter}.{end}"));
    Ok((file("tar.gz"), file("sha1")))
}
