//! The package that is submitted: an encrypted tar with its SHA-1, as `pack_submission.sh` creates it.
//!
//! `mlperf_submission_<SUBMITTER>.tar.gz` is a gzipped tar of `closed/`, `open/` and `network/`, encrypted by `openssl enc
//! -aes256`. The official script forgets `network/`. `mlperf_submission_<SUBMITTER>.sha1` has the output of `sha1sum` for it.
//! Each implementation can open the other's package. The system's `openssl` encrypts it: see `docs/decisions`.
//!
//! [`pack`] checks the tree's [`hygiene`] first and does not pack a tree that cannot be uploaded. The checker decides whether the
//! submission is valid.

mod archive;
mod checksum;
mod error;
mod hygiene;
mod metered;
mod openssl;
mod unpack;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use checksum::HashingWriter;
pub use error::PackError;
pub use hygiene::{DIVISIONS, PackFinding, PackFindingKind, hygiene};
pub use openssl::Password;
pub use unpack::{UnpackLimits, unpack};

use crate::draft_directory::lock_for;
use regatta_submission_check::files::{At, lies_in, replace, replace_with};

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
    pub files: u64,
}

/// Packs the submission in `input` into `directory`, under the submitter's name.
///
/// Both files appear when they are complete, and replace a package of the same name.
///
/// # Errors
/// Returns an error with all findings if the tree cannot be uploaded. Also fails if there is no `openssl`, or if a file cannot be
/// read or written.
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
    let findings = hygiene(input)?;
    if !findings.is_empty() {
        return Err(PackError::Unclean { findings });
    }
    if lies_in(directory, input) {
        return Err(PackError::Inside {
            directory: directory.to_owned(),
        });
    }
    fs::create_dir_all(directory).at("create", directory)?;
    // Package and checksum are two files. The lock prevents another process from replacing only one of them.
    let locked = File::open(directory).at("open", directory)?;
    lock_for(&tarball, &locked, directory)?;
    let (files, sha1, bytes) = replace_with(&tarball, |out| {
        let mut hashed = HashingWriter::new(out);
        let files = openssl::encrypt(&mut hashed, &tarball, password, |out| {
            archive::write(input, &divisions, out)
        })?;
        // The old checksum is removed first, so that no package has a checksum of another one.
        match fs::remove_file(&sha1_file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.at("remove", &sha1_file)?,
        }
        let (sha1, bytes) = hashed.finish();
        Ok::<_, PackError>((files, sha1, bytes))
    })?;
    replace(&sha1_file, checksum::line(&sha1, &tarball).as_bytes())?;
    Ok(Package {
        tarball,
        sha1_file,
        sha1,
        bytes,
        files,
    })
}

/// Returns the package of a submitter that a directory has already.
///
/// # Errors
/// Returns [`PackError::NoName`] for a name that cannot be part of a file's name.
pub fn existing(directory: &Path, submitter: &str) -> Result<Option<PathBuf>, PackError> {
    let (tarball, _) = package_files(directory, submitter)?;
    Ok(tarball.exists().then_some(tarball))
}

/// Returns the paths of a package's two files.
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
