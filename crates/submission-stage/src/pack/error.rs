//! The errors of packing and unpacking a submission.

use regatta_types::ErrorKind;
use std::{fmt::Write as _, io, path::PathBuf};

use regatta_text::Escaped;

use super::PackFinding;
use crate::DraftError;
use regatta_submission_check::files::FileError;

/// The error if a package was not written or not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The unpacked tree cannot be written.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// The submitter's name cannot be part of a file name.
    #[error("`{submitter}` cannot be part of a file name: use letters, digits, `_`, `-` and `.`")]
    NoName {
        /// The name.
        submitter: String,
    },
    /// The tree has none of the divisions.
    #[error("{input} has none of closed/, open/, network/: name the submission's root", input = input.display())]
    NoSubmission {
        /// The submission's root.
        input: PathBuf,
    },
    /// The package would contain itself.
    #[error("the package would be inside the submission, at {directory}: name another directory", directory = directory.display())]
    Inside {
        /// The package's directory.
        directory: PathBuf,
    },
    /// The submission has paths that cannot be uploaded.
    #[error("the submission cannot be uploaded as it is:{list}", list = list(findings))]
    Unclean { findings: Vec<PackFinding> },
    /// The program `openssl` is not installed.
    #[error("cannot start openssl, which encrypts the package: install the package `openssl`")]
    NoOpenssl {
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The program `openssl` failed.
    #[error("cannot {action} {path} with openssl: {messages}", path = path.display())]
    Openssl {
        /// The action: write or decrypt.
        action: &'static str,
        /// The package.
        path: PathBuf,
        /// The messages of `openssl`.
        messages: String,
    },
    /// The archive cannot be written.
    #[error("cannot pack {path}", path = path.display())]
    Archive {
        /// The path that was being packed.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// A file changed while it was packed.
    #[error("{path} changed while it was packed: pack again when nothing writes to the submission", path = path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The checksum file does not have the format of `sha1sum`.
    #[error("{path} is not a line of sha1sum", path = path.display())]
    ChecksumFile {
        /// The file.
        path: PathBuf,
    },
    /// The package's SHA-1 is not the one in its checksum file.
    #[error("{path} has the SHA-1 {found}, not {stated}: it is damaged or not the right one", path = path.display())]
    Checksum {
        /// The package.
        path: PathBuf,
        /// Its SHA-1.
        found: String,
        /// The SHA-1 in the checksum file.
        stated: String,
    },
    /// The decrypted data is not an archive, nearly always because of a wrong password.
    #[error("{path} cannot be opened: the password is wrong, or it is not a package", path = path.display())]
    NotAnArchive {
        /// The package.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The archive has an entry that a submission cannot have.
    #[error("the package has `{path}`, which is not a file or directory of a submission: nothing was unpacked", path = Escaped(path.display()))]
    Hostile {
        /// Its path in the archive.
        path: PathBuf,
    },
    /// The archive unpacks to more data than the limits allow.
    #[error(
        "the package unpacks to more than {bytes} bytes or {entries} files and directories: nothing was unpacked; hint: allow \
         more with --max-gib or --max-entries if you trust it"
    )]
    TooLarge {
        /// The allowed number of bytes.
        bytes: u64,
        /// The allowed number of files and directories.
        entries: u64,
    },
    /// The output exists already.
    #[error("{path} exists already: name a new directory", path = path.display())]
    Exists {
        /// The directory.
        path: PathBuf,
    },
}

impl PackError {
    /// Returns who has to act.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoName { .. } | Self::NoSubmission { .. } | Self::Inside { .. } | Self::Exists { .. } => {
                ErrorKind::Usage
            }
            _ => ErrorKind::Internal,
        }
    }
}

/// Lists the findings, one per line, up to a screenful.
fn list(findings: &[PackFinding]) -> String {
    const SHOWN: usize = 20;
    let mut text = String::new();
    for finding in findings.iter().take(SHOWN) {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {}", Escaped(finding));
    }
    if findings.len() > SHOWN {
        let _ = write!(text, "\n  and {} more", findings.len() - SHOWN);
    }
    text
}
